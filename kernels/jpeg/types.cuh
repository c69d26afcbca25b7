#pragma once
// The arguments from the host, byte for byte as in
// src/picture/jpeg/decode/gpu_rows/kernel_picture.rs and src/device/cuda/gpu_jpeg_decoder.rs.
//
// Words of this folder: a unit is UNIT_BITS of a segment's data; a segment ends at a restart
// marker; a chain covers CHAIN_UNITS units and decodes lengths alone; a piece is a unit whose
// blocks one thread decodes in full. The last of each may be shorter.

typedef unsigned char u8;
typedef unsigned short u16;
typedef short i16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define UNIT_BITS 512u
#define CHAIN_UNITS 4u
#define CHAIN_BITS (UNIT_BITS * CHAIN_UNITS)
// Units that a chain may walk past its own: decoded, of which photos take up to 93; and with
// those that another has walked from the same state, as in flat areas.
#define MOST_UNITS 1024u
#define MOST_KNOWN 8192u
// Threads of a block of most stages; chains take fewer where shared memory is small.
#define THREADS 128u
#define WIDE_THREADS 512u

// The error word of a picture. Any bit sends it to the CPU decoder.
#define TOO_FEW_BLOCKS 1u
#define NO_CODE 2u
#define TOO_LONG 4u
#define BAD_END 8u

// How the samples of a component become pixels.
enum Filter { REPEAT = 0, ACROSS = 1, DOWN = 2, BOTH = 3 };
enum Colour { GREY = 0, YCBCR = 1, RGB = 2 };

struct Component {
    u32 blocks;         // the first of its blocks that are kept, among the picture's
    u32 left, columns;  // the columns of blocks that are kept
    u32 top, rows;
    u32 h, v;           // blocks of an MCU
    u32 side;           // samples along a block: 8, 4, 2 or 1
    u32 across, down;   // pixels of a sample
    u32 filter;
    u32 width, height;  // samples of the whole component
    u32 plane;          // bytes behind the picture's planes
    u32 pitch;
    u32 dc, ac;         // its tables: 0 or 1; 2 or 3
    u32 pair;           // its longer lookups: 0 or 1; 2 for none
    i16 factors[64];    // of quantization, in natural order
};

// A table as DHT states it, and where its lookups lie.
struct Table {
    u32 used;
    u32 base;       // of its entries, among those of the picture
    u32 threshold;  // the first 16 bits whose code is longer than FIRST_BITS
    u32 second;     // entries from there on
    u32 end;        // bits of the code of the end of a block; 0 for none
    u8 counts[16];
    u8 symbols[256];
};

struct Picture {
    u64 source;         // where the coded data lie, in memory of the host that devices read
    u64 coded;          // bytes behind the batch's coded data, where they are copied to
    u64 tables;         // the others: bytes behind the work memory
    u64 coefficients;   // 64 of 16 bits a block
    u64 infos;          // an Info a block
    u64 planes;
    u64 rgb;
    u32 coded_bytes;
    u32 first_unit, units;
    u32 chains;
    u32 segment, segments;  // the first, and how many
    u32 interval;       // blocks of a segment
    u32 blocks;         // of the picture
    u32 last;           // blocks up to the last that is needed
    u32 mcus;           // of a row
    u32 count;          // components
    u32 of_mcu;         // blocks of an MCU
    u32 order;          // their components, two bits each
    u32 colour;
    u32 left;           // the first column of pixels that is written, a multiple of 8
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
    u32 unit;        // its first unit and chain, counted in the picture
    u32 chain;
};

// Of one axis of a resize.
struct ResizeAxis {
    u32 inputs, outputs;
    u32 taps;          // coefficients of an output pixel
    u32 precision;     // bits of their fraction
    u32 starts;        // bytes behind the tables: the first input pixel of each output pixel
    u32 coefficients;  // of 16 bits, the same: tap by tap those of all output pixels
};

// A window that is resized.
struct Resize {
    u64 source;       // where its tables lie, in memory of the host that devices read
    u64 tables;       // bytes behind the batch's coded data, where they are copied to
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
    const u16 *maps;   // the picture of each block of each launch
    u8 *coded;
    u8 *work;
    u64 *states;       // a unit each: chain << 32 | blocks << 16 | state at its end
    u64 *memos;        // four a unit: blocks << 32 | state at its end << 16 | at its start
    u32 *firsts;       // a unit each: the block that is under way where it begins
    int *sums;         // three a unit: DC sums of the components
    u32 *errors;
    const Resize *resizes;
};

// DC sum since the piece began (16 bits) | sixteens of coefficients less one << 16; the piece.
struct Info {
    u32 dc, piece;
};

static_assert(sizeof(Table) == 292 && sizeof(Component) == 200 && sizeof(Picture) == 1960 &&
                  sizeof(Segment) == 16 && sizeof(Resize) == 120 && sizeof(Batch) == 88,
              "the host's structs");
