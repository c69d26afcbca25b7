// Baseline JPEG, from coded bytes to RGB, with the same bytes as the CPU decoder
// (src/picture/jpeg/decode). A batch of images goes through the stages in order, one launch each.
// kernels/README.md lists them.
//
// - `jpeg/types`: arguments from the host; `jpeg/bits`: positions in coded data;
// - `jpeg/rows`: copies coded data to the device;
// - `jpeg/tables`: makes the Huffman lookups of each image;
// - `jpeg/chains`: finds where blocks begin; `jpeg/scan`: numbers the blocks;
// - `jpeg/coefficients`: decodes the coefficients of blocks; `jpeg/dc`: adds up the DC differences;
// - `jpeg/transform`: turns coefficients into samples; `jpeg/colour`: turns samples into RGB;
// - `jpeg/resize`: resizes windows to the size of their rows.
//
// The coded bytes come from processes that read untrusted files. They may even change while a
// kernel reads them. The consumer computed everything else. So no kernel takes an address from
// coded bytes: they only decide how long a loop runs within these bounds, and the output values.
//
// | stage | bound for a thread |
// |---|---|
// | rows | the image's coded bytes |
// | tables | 16 steps an entry, 4 symbols a longer entry |
// | chains | its own 4 units and MOST_UNITS more, of UNIT_BITS lookups each; MOST_KNOWN memos |
// | scan, dc | the pieces of the image |
// | coefficients | UNIT_BITS lookups, and 64 more for the last block |
// | transform, colour | no loop depends on data |
// | resize | the taps of its output pixels, which the host limits |
//
// A lookup consumes at least one bit. The number of chains of an image follows from its coded bytes
// and restart markers, which the host limits (src/picture/jpeg/decode/gpu_rows).

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
