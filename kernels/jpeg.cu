// Baseline JPEG, from coded bytes to RGB, with the bytes of the CPU decoder
// (src/picture/jpeg/decode). A batch of pictures goes through the stages one after another,
// a launch each; kernels/README.md lists them.
//
// - `jpeg/types`: what the host hands over; `jpeg/rows`: coded data; `jpeg/bits`: a place in them;
// - `jpeg/tables`: lookups of each picture; `jpeg/chains`: where blocks begin;
// - `jpeg/scan`: their numbers; `jpeg/coefficients`: their values; `jpeg/dc`: sums of DC;
// - `jpeg/transform`: samples; `jpeg/colour`: RGB;
// - `jpeg/resize`: windows that become as large as their rows.
//
// The coded bytes come from processes that read untrusted files, and may even change
// while a kernel reads them. All else was computed by the consumer. So no kernel takes a place
// in memory from coded bytes: they decide how far a loop goes within these bounds, and which
// values come out.
//
// | stage | bound, of a thread |
// |---|---|
// | rows | the picture's coded bytes |
// | tables | 16 steps an entry, 4 symbols a longer entry |
// | chains | its own 4 units and MOST_UNITS more, of UNIT_BITS lookups each; MOST_KNOWN memos |
// | scan, dc | the pieces of the picture |
// | coefficients | UNIT_BITS lookups, and 64 more for the last block |
// | transform, colour | none of its loops depends on data |
// | resize | the taps of its output pixels, which the host limits |
//
// A lookup takes a bit at least. A picture has at most as many chains as its coded bytes and
// restart markers say, which the host limits (src/picture/jpeg/decode/gpu_rows).

#include "jpeg/types.cuh"

#include "jpeg/rows.cuh"

#include "jpeg/bits.cuh"
#include "jpeg/tables.cuh"

#include "jpeg/chains.cuh"
#include "jpeg/scan.cuh"

#include "jpeg/coefficients.cuh"
#include "jpeg/dc.cuh"

#include "jpeg/transform.cuh"

#include "jpeg/colour.cuh"

#include "jpeg/resize.cuh"
