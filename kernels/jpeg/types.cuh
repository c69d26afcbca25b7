#pragma once
// The arguments from the host, byte for byte as in
// src/picture/jpeg/decode/gpu_rows/kernel_picture.rs and src/device/cuda/gpu_jpeg_decoder.rs.
//
// Terms of this folder:
//
// - unit: UNIT_BITS of a segment's data;
// - segment: ends at a restart marker;
// - chain: covers CHAIN_UNITS units and decodes only lengths;
// - piece: a unit whose blocks one thread decodes in full.
//
// The last of each may be shorter.

typedef unsigned char u8;
typedef unsigned short u16;
typedef short i16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define UNIT_BITS 512u
#define CHAIN_UNITS 4u
#define CHAIN_BITS (UNIT_BITS * CHAIN_UNITS)
// Units that a chain may walk past its own. The first limit counts decoded units; photos need up to
// 93. The second adds units that another chain walked from the same state, as in flat areas.
#define MOST_UNITS 1024u
#define MOST_KNOWN 8192u
// Threads of a block in most stages. Chains use fewer if shared memory is small.
#define THREADS 128u
#define WIDE_THREADS 512u

// The error word of a picture. Any bit sends it to the CPU decoder.
#define TOO_FEW_BLOCKS 1u
#define NO_CODE 2u
#define TOO_LONG 4u
#define BAD_END 8u

// How samples of a component are upsampled.
enum Filter { REPEAT = 0, ACROSS = 1, DOWN = 2, BOTH = 3 };
enum Colour { GREY = 0, YCBCR = 1, RGB = 2 };

struct Component {
    u32 blocks;         // its first kept block, among those of the image
    u32 left, columns;  // the kept columns of blocks
    u32 top, rows;
    u32 h, v;           // blocks of an MCU
    u32 side;           // samples along a block: 8, 4, 2 or 1
    u32 across, down;   // pixels of a sample
    u32 filter;
    u32 width, height;  // samples of the whole component
    u32 plane;          // offset in the image's planes, bytes
    u32 pitch;
    u32 dc, ac;         // its tables: 0 or 1; 2 or 3
    u32 pair;           // its pair lookups: 0 or 1; 2 for none
    i16 factors[64];    // of quantization, in natural order
};

// A table as DHT defines it, and where its lookups are.
struct Table {
    u32 used;
    u32 base;       // of its entries, among those of the image
    u32 threshold;  // the first 16 bits whose code is longer than FIRST_BITS
    u32 second;     // entries from there on
    u32 end;        // bits of the code of the end of a block; 0 for none
    u8 counts[16];
    u8 symbols[256];
};

struct Picture {
    u64 source;         // the coded data, in host memory that devices read
    u64 coded;          // destination: offset in the batch's coded data, bytes
    u64 tables;         // these: offsets in the work memory, bytes
    u64 coefficients;   // 64 of 16 bits a block
    u64 infos;          // an Info a block
    u64 planes;
    u64 rgb;
    u32 coded_bytes;
    u32 first_unit, units;
    u32 chains;
    u32 segment, segments;  // first and number
    u32 interval;       // blocks of a segment
    u32 blocks;         // of the image
    u32 last;           // blocks up to the last needed one
    u32 mcus;           // of a row
    u32 count;          // components
    u32 of_mcu;         // blocks of an MCU
    u32 order;          // their components, two bits each
    u32 colour;
    u32 left;           // the first written column of pixels, a multiple of 8
    u32 x, y, width, height;  // the window
    u32 pitch;
    u32 singles;        // entries of the four tables, a multiple of 8
    u32 pairs;          // components with longer lookups of their own
    // The first block of each launch.
    u32 chain_block, piece_block, rgb_block, plane_block, colour_block;
    u32 phases;         // blocks after which the tables repeat: of_mcu, or 1
    u16 places[12];     // of an MCU's blocks: across | down << 8
    Table table[4];     // DC 0, DC 1, AC 0, AC 1
    Component component[3];
};

struct Segment {
    u32 start, end;  // bits
    u32 unit;        // its first unit and chain, counted in the image
    u32 chain;
};

// One axis of a resize.
struct ResizeAxis {
    u32 inputs, outputs;
    u32 taps;          // coefficients of an output pixel
    u32 precision;     // bits of their fraction
    u32 starts;        // offset in the tables, bytes: first input pixel of each output
    u32 coefficients;  // the same, of 16 bits: tap by tap, for all output pixels
};

// A window to resize.
struct Resize {
    u64 source;       // its tables, in host memory that devices read
    u64 tables;       // destination: offset in the batch's coded data, bytes
    u64 images[3];    // bytes behind the work memory: the window's rows, those between the
                      // passes, those of the result
    u32 pitches[3];   // multiples of 12
    u32 skips[2];     // bytes before each row of the first two
    u32 table_bytes;  // a multiple of 16
    u32 picture;
    u32 down_first;   // or across
    ResizeAxis across, down;
};

struct Batch {
    const Picture *pictures;
    const Segment *segments;
    const u16 *maps;   // the image of each block of each launch
    u8 *coded;
    u8 *work;
    u64 *states;       // a unit each: chain << 32 | blocks << 16 | state at its end
    u64 *memos;        // four a unit: blocks << 32 | state at its end << 16 | at its start
    u32 *firsts;       // a unit each: the current block where it begins
    int *sums;         // three a unit: DC sums of the components
    u32 *errors;
    const Resize *resizes;
};

// DC sum since the piece began (16 bits) | (groups of 16 coefficients) - 1 << 16; the piece.
struct Info {
    u32 dc, piece;
};

static_assert(sizeof(Table) == 292 && sizeof(Component) == 200 && sizeof(Picture) == 1960 &&
                  sizeof(Segment) == 16 && sizeof(Resize) == 120 && sizeof(Batch) == 88,
              "the host's structs");
