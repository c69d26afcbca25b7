// A driver library without a device, for tests on machines without one: memory of
// the device is memory of the host, copies are done at once, a launch writes what
// shows which bytes it was told to read. Each call is a line of a log. Kernels: `crops`,
// `crop_sets` as it is, those of JPEGs, of which `jpeg_rows` copies and `jpeg_tables` does the
// rest, and `views` of images as they are. After each buffer of the device is memory that nobody
// may touch.
//
//   STANDIN_LOG=path           where the log goes
//   STANDIN_FAIL=name:code:n   the n-th call of `name` answers `code`; from 700 on every
//                              later call of the work does too, as of a real device
//   STANDIN_PENDING=n          an event is over at the n-th query behind the first
//   STANDIN_RESET=name:code:n  from the n-th call of `name` on the context is gone, as if
//                              another part of the process had reset it: calls answer `code`
//   STANDIN_RESET_FILE=path    the same, from when there is a file of this name on
//   STANDIN_REVIVED=1          and there is another primary context in its place
//   STANDIN_FREE=bytes         of the device's memory, what nobody else has
//   STANDIN_FLAGS=n,n          JPEGs of so many bytes of coded data are flagged
//   STANDIN_SLOW=ms            each part of JPEGs takes so long
//   STANDIN_HANG=n             the n-th part of JPEGs never ends
//   STANDIN_DRIVER, STANDIN_DEVICES, STANDIN_CAPABILITY   12040, 1, 90 when not given
//   STANDIN_SHARED             bytes of shared memory that a block may have; 232448
//   STANDIN_LIES=what          rows of `crop_sets` lie, as those of a hostile worker may: `ends`,
//                              each output pixel is the pixel far after the window; `tables`, all
//                              tables are random; `headers`, after the first batch the window of
//                              the second row has no width
//
// An empty CUDA_VISIBLE_DEVICES hides all devices, as of a real driver.
//
// Compiled with -DWITHOUT_EVENT_QUERY it has no cuEventQuery, as a library too old.

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef unsigned Result;
typedef unsigned long long Address;

enum {
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201,
    NOT_FOUND = 500,
    NOT_READY = 600,
    CONTEXT_IS_DESTROYED = 709,
    NOT_REGISTERED = 713,
};

static long number(const char *name, long otherwise) {
    const char *text = getenv(name);
    return text ? atol(text) : otherwise;
}

static void say(const char *form, ...) {
    const char *path = getenv("STANDIN_LOG");
    if (!path) return;
    char line[256];
    va_list args;
    va_start(args, form);
    int len = vsnprintf(line, sizeof line - 1, form, args);
    va_end(args);
    line[len++] = '\n';
    int file = open(path, O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (write(file, line, len) != len) abort();
    close(file);
}

static Result sticky;

// What `plan` says of the call, by its name: the code, at the call that is meant. `calls`
// counts those of that name.
static Result said_by(const char *plan, const char *name, long *calls) {
    const size_t len = strlen(name);
    if (!plan || strncmp(plan, name, len) || plan[len] != ':') return 0;
    const char *code = plan + len + 1, *nth = strchr(code, ':');
    return ++*calls == (nth ? atol(nth + 1) : 1) ? (Result)atol(code) : 0;
}

// Not 0 once the context was reset: what its calls answer.
static Result was_reset(const char *name) {
    static Result code;
    static long calls;
    const char *file = getenv("STANDIN_RESET_FILE");
    if (code) return code;
    code = said_by(getenv("STANDIN_RESET"), name, &calls);
    if (!code && file && !access(file, F_OK)) code = CONTEXT_IS_DESTROYED;
    if (code) say("%s finds the context gone", name);
    return code;
}

// What a call is to answer instead of doing its work; 0 for nothing.
static Result planned(const char *name) {
    static long calls;
    const Result answer = said_by(getenv("STANDIN_FAIL"), name, &calls);
    if (!answer) return sticky;
    if (answer >= 700 && answer < 800) sticky = answer;
    say("%s answers %u", name, answer);
    return answer;
}

static _Thread_local int depth;
static int retained;

#define PLANNED(name)                       \
    do {                                    \
        const Result answer = planned(name); \
        if (answer) return answer;          \
    } while (0)
// All that was made in it is gone with a context; in a real one's place its names may be
// another's.
#define STILL_THERE(name)                   \
    do {                                    \
        const Result gone = was_reset(name); \
        if (gone) {                         \
            say("%s of what is gone", name); \
            return gone;                    \
        }                                   \
    } while (0)
#define IN_CONTEXT(name)                    \
    do {                                    \
        if (depth < 1 || retained < 1) return INVALID_CONTEXT; \
        STILL_THERE(name);                  \
        PLANNED(name);                      \
    } while (0)

// ---- the driver, devices, contexts ----

Result cuGetErrorName(Result code, const char **text) {
    static char names[64];
    snprintf(names, sizeof names, "CUDA_ERROR_%u", code);
    *text = names;
    return 0;
}

Result cuGetErrorString(Result code, const char **text) {
    (void)code;
    *text = "said by the stand-in";
    return 0;
}

Result cuDriverGetVersion(int *version) {
    *version = (int)number("STANDIN_DRIVER", 12040);
    return 0;
}

Result cuInit(unsigned flags) {
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    PLANNED("cuInit");
    say("cuInit %u", flags);
    return visible && !*visible ? NO_DEVICE : 0;
}

Result cuDeviceGetCount(int *count) {
    PLANNED("cuDeviceGetCount");
    *count = (int)number("STANDIN_DEVICES", 1);
    return *count ? 0 : NO_DEVICE;
}

Result cuDeviceGet(int *device, int ordinal) {
    if (ordinal < 0 || ordinal >= number("STANDIN_DEVICES", 1)) return INVALID_DEVICE;
    *device = ordinal;
    return 0;
}

Result cuDeviceGetName(char *name, int len, int device) {
    snprintf(name, (size_t)len, "Stand-in %d", device);
    return 0;
}

Result cuDeviceTotalMem_v2(size_t *bytes, int device) {
    (void)device;
    *bytes = 8ull << 30;
    return 0;
}

Result cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    PLANNED("cuDeviceGetAttribute");
    const int capability = (int)number("STANDIN_CAPABILITY", 90);
    switch (attribute) {
    case 75: *value = capability / 10; return 0;
    case 76: *value = capability % 10; return 0;
    case 97: *value = (int)number("STANDIN_SHARED", 232448); return 0;
    default: return INVALID_VALUE;
    }
}

Result cuDevicePrimaryCtxRetain(void **context, int device) {
    PLANNED("cuDevicePrimaryCtxRetain");
    *context = &retained;
    say("cuDevicePrimaryCtxRetain %d", device);
    retained++;
    return 0;
}

Result cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
    (void)device;
    *flags = 0;
    *active = retained > 0 && (!was_reset("cuDevicePrimaryCtxGetState") || number("STANDIN_REVIVED", 0));
    return 0;
}

Result cuDevicePrimaryCtxRelease_v2(int device) {
    say("cuDevicePrimaryCtxRelease_v2 %d, %d left current", device, depth);
    retained--;
    return 0;
}

Result cuCtxPushCurrent_v2(void *context) {
    if (context != &retained) return INVALID_CONTEXT;
    const Result gone = was_reset("cuCtxPushCurrent_v2");
    if (gone && !number("STANDIN_REVIVED", 0)) return gone;
    depth++;
    return 0;
}

Result cuCtxGetId(void *context, unsigned long long *id) {
    if (context != &retained) return INVALID_CONTEXT;
    const Result gone = was_reset("cuCtxGetId");
    if (gone && !number("STANDIN_REVIVED", 0)) return gone;
    *id = gone ? 8 : 7;
    return 0;
}

Result cuCtxPopCurrent_v2(void **context) {
    if (depth < 1) return INVALID_CONTEXT;
    *context = &retained;
    depth--;
    return 0;
}

static size_t taken;

static size_t left(void) {
    const char *bytes = getenv("STANDIN_FREE");
    const size_t all = bytes ? (size_t)atoll(bytes) : (size_t)7 << 30;
    const size_t gone = __atomic_load_n(&taken, __ATOMIC_SEQ_CST);
    return gone < all ? all - gone : 0;
}

Result cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
    IN_CONTEXT("cuMemGetInfo_v2");
    *free_bytes = getenv("STANDIN_FREE") ? left() : (size_t)7 << 30;
    *total = 8ull << 30;
    return 0;
}

// ---- streams and events ----

struct Event {
    int id;
    long left;
    int timed;
};

static int made;

static const char *stream_name(void *stream) {
    static _Thread_local char name[32];
    snprintf(name, sizeof name, "s%d", (uintptr_t)stream < 16 ? (int)(uintptr_t)stream : *(int *)stream);
    return name;
}

Result cuStreamCreate(void **stream, unsigned flags) {
    IN_CONTEXT("cuStreamCreate");
    if (flags != 1) return INVALID_VALUE;
    int *id = malloc(sizeof *id);
    *id = 100 + made++;
    *stream = id;
    say("cuStreamCreate s%d", *id);
    return 0;
}

Result cuStreamDestroy_v2(void *stream) {
    STILL_THERE("cuStreamDestroy_v2");
    say("cuStreamDestroy_v2 %s", stream_name(stream));
    free(stream);
    return 0;
}

Result cuStreamSynchronize(void *stream) {
    IN_CONTEXT("cuStreamSynchronize");
    say("cuStreamSynchronize %s", stream_name(stream));
    return 0;
}

Result cuStreamWaitEvent(void *stream, struct Event *event, unsigned flags) {
    IN_CONTEXT("cuStreamWaitEvent");
    say("cuStreamWaitEvent %s e%d", stream_name(stream), event->id);
    return flags ? INVALID_VALUE : 0;
}

Result cuEventCreate(struct Event **event, unsigned flags) {
    IN_CONTEXT("cuEventCreate");
    // Host threads sleep for it, and it has a time or not.
    if (flags != 1 && flags != 3) return INVALID_VALUE;
    *event = malloc(sizeof **event);
    **event = (struct Event){made++, number("STANDIN_PENDING", 0), flags == 1};
    say("cuEventCreate e%d", (*event)->id);
    return 0;
}

Result cuEventDestroy_v2(struct Event *event) {
    STILL_THERE("cuEventDestroy_v2");
    say("cuEventDestroy_v2 e%d", event->id);
    free(event);
    return 0;
}

Result cuEventRecord(struct Event *event, void *stream) {
    IN_CONTEXT("cuEventRecord");
    say("cuEventRecord e%d %s", event->id, stream_name(stream));
    return 0;
}

#ifndef WITHOUT_EVENT_QUERY
Result cuEventQuery(struct Event *event) {
    IN_CONTEXT("cuEventQuery");
    const int over = event->left-- <= 0;
    say("cuEventQuery e%d %s", event->id, over ? "over" : "not ready");
    return over ? 0 : NOT_READY;
}
#endif

// A microsecond an event.
Result cuEventElapsedTime(float *ms, struct Event *from, struct Event *to) {
    IN_CONTEXT("cuEventElapsedTime");
    if (!from->timed || !to->timed) return INVALID_VALUE;
    *ms = 1e-3f * (float)(to->id - from->id);
    return 0;
}

Result cuEventSynchronize(struct Event *event) {
    IN_CONTEXT("cuEventSynchronize");
    event->left = 0;
    say("cuEventSynchronize e%d", event->id);
    return 0;
}

// ---- memory ----

enum { PAGE = 4096, GUARD = 1 << 20 };

Result cuMemAlloc_v2(Address *address, size_t len) {
    IN_CONTEXT("cuMemAlloc_v2");
    if (len > left()) return OUT_OF_MEMORY;
    __atomic_add_fetch(&taken, len, __ATOMIC_SEQ_CST);
    // How long it is stands in front.
    const size_t room = (len + 255) / 256 * 256, pages = PAGE + (room + PAGE - 1) / PAGE * PAGE;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    char *base = mmap(NULL, pages + GUARD, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (base == MAP_FAILED || mprotect(base + pages, GUARD, PROT_NONE)) return OUT_OF_MEMORY;
    char *at = base + pages - room;
    memcpy(at - 256, &len, sizeof len);
    *address = (Address)(uintptr_t)at;
    memset((void *)(uintptr_t)*address, 0xaa, len);
    say("cuMemAlloc_v2 %llx %zu", *address, len);
    return 0;
}

Result cuMemFree_v2(Address address) {
    STILL_THERE("cuMemFree_v2");
    say("cuMemFree_v2 %llx", address);
    char *at = (char *)(uintptr_t)address;
    const size_t len = *(size_t *)(at - 256), room = (len + 255) / 256 * 256;
    const size_t pages = PAGE + (room + PAGE - 1) / PAGE * PAGE;
    __atomic_sub_fetch(&taken, len, __ATOMIC_SEQ_CST);
    munmap(at + room - pages, pages + GUARD);
    return 0;
}

Result cuMemHostAlloc(void **at, size_t len, unsigned flags) {
    IN_CONTEXT("cuMemHostAlloc");
    // Memory that combines writes is slow to read: nobody here asks for it.
    if (flags != 1) return INVALID_VALUE;
    *at = malloc(len);
    say("cuMemHostAlloc %llx %zu", (Address)(uintptr_t)*at, len);
    return 0;
}

Result cuMemFreeHost(void *at) {
    STILL_THERE("cuMemFreeHost");
    say("cuMemFreeHost %llx", (Address)(uintptr_t)at);
    free(at);
    return 0;
}

static char *pinned, *pinned_end;

static int lies(const char *what) {
    const char *told = getenv("STANDIN_LIES");
    return told && !strcmp(told, what);
}

// Writes a lie into the header of a row again and again, until the ring goes.
static pthread_t liar;
static int lying;

static void *lie_in_header(void *width) {
    while (__atomic_load_n(&lying, __ATOMIC_SEQ_CST)) {
        for (int n = 0; n < 1000; n++) *(volatile unsigned *)width = 0;
        sched_yield();
    }
    return NULL;
}

static void stop_headers(void) {
    if (__atomic_exchange_n(&lying, 0, __ATOMIC_SEQ_CST)) pthread_join(liar, NULL);
}

Result cuMemHostRegister_v2(void *at, size_t len, unsigned flags) {
    IN_CONTEXT("cuMemHostRegister_v2");
    if (flags != 3) return INVALID_VALUE;
    pinned = at;
    pinned_end = pinned + len;
    say("cuMemHostRegister_v2 %llx %zu", (Address)(uintptr_t)at, len);
    return 0;
}

Result cuMemHostUnregister(void *at) {
    STILL_THERE("cuMemHostUnregister");
    // The map must still be there.
    volatile char byte = *(volatile char *)at;
    (void)byte;
    say("cuMemHostUnregister %llx", (Address)(uintptr_t)at);
    if (at != pinned) return NOT_REGISTERED;
    stop_headers();
    pinned = pinned_end = NULL;
    return 0;
}

Result cuMemHostGetDevicePointer_v2(Address *address, void *at, unsigned flags) {
    IN_CONTEXT("cuMemHostGetDevicePointer_v2");
    if (flags || at != pinned) return INVALID_VALUE;
    *address = (Address)(uintptr_t)at;
    return 0;
}

Result cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t len, void *stream) {
    IN_CONTEXT("cuMemcpyHtoDAsync_v2");
    memcpy((void *)(uintptr_t)to, from, len);
    say("cuMemcpyHtoDAsync_v2 %zu %s", len, stream_name(stream));
    return 0;
}

Result cuMemcpyDtoHAsync_v2(void *to, Address from, size_t len, void *stream) {
    IN_CONTEXT("cuMemcpyDtoHAsync_v2");
    memcpy(to, (const void *)(uintptr_t)from, len);
    say("cuMemcpyDtoHAsync_v2 %zu %s", len, stream_name(stream));
    return 0;
}

Result cuMemsetD8Async(Address to, unsigned char value, size_t len, void *stream) {
    IN_CONTEXT("cuMemsetD8Async");
    memset((void *)(uintptr_t)to, value, len);
    say("cuMemsetD8Async %zu %s", len, stream_name(stream));
    return 0;
}

Result cuMemsetD32Async(Address to, unsigned value, size_t count, void *stream) {
    IN_CONTEXT("cuMemsetD32Async");
    for (size_t n = 0; n < count; n++) ((unsigned *)(uintptr_t)to)[n] = value;
    say("cuMemsetD32Async %zu %s", count, stream_name(stream));
    return 0;
}

// CUDA_MEMCPY2D.
struct Copy {
    size_t src_x, src_y;
    int src_type;
    const char *src_host;
    Address src_device;
    void *src_array;
    size_t src_pitch, dst_x, dst_y;
    int dst_type;
    char *dst_host;
    Address dst_device;
    void *dst_array;
    size_t dst_pitch, width, height;
};

Result cuMemcpy2DAsync_v2(const struct Copy *copy, void *stream) {
    IN_CONTEXT("cuMemcpy2DAsync_v2");
    const int of_host = copy->src_type == 1;
    if ((!of_host && copy->src_type != 2) || copy->dst_type != 2) return INVALID_VALUE;
    const char *begin = of_host ? copy->src_host : (const char *)(uintptr_t)copy->src_device;
    const char *from = begin + copy->src_y * copy->src_pitch + copy->src_x;
    char *to = (char *)(uintptr_t)copy->dst_device + copy->dst_y * copy->dst_pitch + copy->dst_x;
    const char *last = from + (copy->height - 1) * copy->src_pitch + copy->width;
    if (of_host && (from < pinned || last > pinned_end)) return NOT_REGISTERED;
    for (size_t row = 0; row < copy->height; row++)
        memcpy(to + row * copy->dst_pitch, from + row * copy->src_pitch, copy->width);
    if (of_host && lies("headers") && copy->height > 1 && !lying) {
        lying = 1;
        // The third number of a header is the width of its window.
        pthread_create(&liar, NULL, lie_in_header, (char *)from + copy->src_pitch + 8);
    }
    say("cuMemcpy2DAsync_v2 %zu x %zu %s", copy->width, copy->height, stream_name(stream));
    return 0;
}

// ---- kernels ----

struct Function {
    struct Function *next;
    char name[64];
    // Shared memory that a block of a launch may have, beyond what the kernel declares.
    unsigned shared;
};

struct Module {
    char *ptx;
    struct Function *functions;
};

Result cuModuleLoadData(struct Module **module, const char *ptx) {
    IN_CONTEXT("cuModuleLoadData");
    *module = calloc(1, sizeof **module);
    (*module)->ptx = strdup(ptx);
    say("cuModuleLoadData %llx", (Address)(uintptr_t)*module);
    return 0;
}

Result cuModuleUnload(struct Module *module) {
    STILL_THERE("cuModuleUnload");
    say("cuModuleUnload %llx", (Address)(uintptr_t)module);
    for (struct Function *f = module->functions, *next; f; f = next) {
        next = f->next;
        free(f);
    }
    free(module->ptx);
    free(module);
    return 0;
}

Result cuModuleGetFunction(struct Function **function, struct Module *module, const char *name) {
    IN_CONTEXT("cuModuleGetFunction");
    char entry[128];
    snprintf(entry, sizeof entry, ".visible .entry %s(", name);
    if (!strstr(module->ptx, entry)) return NOT_FOUND;
    struct Function *f = calloc(1, sizeof *f);
    snprintf(f->name, sizeof f->name, "%s", name);
    f->shared = 48 << 10;
    f->next = module->functions;
    *function = module->functions = f;
    return 0;
}

Result cuFuncSetAttribute(struct Function *function, int attribute, int value) {
    IN_CONTEXT("cuFuncSetAttribute");
    // The most bytes of dynamic shared memory.
    if (attribute != 8 || value > number("STANDIN_SHARED", 232448)) return INVALID_VALUE;
    function->shared = (unsigned)value;
    say("cuFuncSetAttribute %s %d", function->name, value);
    return 0;
}

// The start of a `Picture` of kernels/jpeg/types.cuh, which has 1,960 bytes: what is decoded,
// and where to.
struct Picture {
    Address source, coded, tables, coefficients, infos, planes, rgb;
    unsigned coded_bytes, not_used[13];
    unsigned left, x, y, width, height, pitch;
    char rest[1960 - 136];
};

// A `Resize` of it: what a window becomes.
struct Resize {
    Address source, tables, images[3];
    unsigned pitches[3], skips[2], table_bytes, picture, down_first;
    struct {
        unsigned inputs, outputs, taps, precision, starts, coefficients;
    } across, down;
};

// A `Batch` of it.
struct Batch {
    const struct Picture *pictures;
    const void *segments, *maps;
    unsigned char *coded;
    unsigned char *work;
    void *states, *memos, *firsts, *sums;
    unsigned *errors;
    const struct Resize *resizes;
};

_Static_assert(sizeof(struct Picture) == 1960 && sizeof(struct Resize) == 120 &&
                   sizeof(struct Batch) == 88,
               "the kernels' structs");

static int is_flagged(unsigned coded_bytes) {
    const char *text = getenv("STANDIN_FLAGS");
    while (text && *text) {
        char *end;
        if (strtoul(text, &end, 10) == coded_bytes) return 1;
        text = *end == ',' ? end + 1 : "";
    }
    return 0;
}

// To where coded data are read, and tables behind them.
static void copy(const struct Batch *batch, unsigned pictures, unsigned all) {
    for (unsigned n = 0; n < all - pictures; n++) {
        const struct Resize *r = &batch->resizes[n];
        memcpy(batch->coded + r->tables, (const void *)r->source, r->table_bytes);
    }
    for (unsigned n = 0; n < pictures; n++) {
        const struct Picture *p = &batch->pictures[n];
        memcpy(batch->coded + p->coded, (const void *)p->source, (p->coded_bytes + 15) & ~15u);
    }
}

// Of each picture: a pixel of the window is the sum of the coded bytes, its column, and three
// times its row, of the whole picture at its scale. Nothing else of the memory is written. The
// error word is 1 where the picture is flagged: then the pixels are others.
static void decode(const struct Batch *batch, unsigned pictures) {
    static int parts;
    if (++parts == number("STANDIN_HANG", 0))
        for (;;) pause();
    usleep((useconds_t)(1000 * number("STANDIN_SLOW", 0)));
    for (unsigned n = 0; n < pictures; n++) {
        const struct Picture *p = &batch->pictures[n];
        const int flagged = is_flagged(p->coded_bytes);
        unsigned sum = flagged ? 101 : 0;
        for (unsigned i = 0; i < p->coded_bytes; i++) sum += batch->coded[p->coded + i];
        for (unsigned y = 0; y < p->height; y++) {
            unsigned char *line =
                batch->work + p->rgb + 3 * (p->x - p->left) + (size_t)y * p->pitch;
            for (unsigned x = 0; x < 3 * p->width; x++)
                line[x] = (unsigned char)(sum + p->x + x / 3 + 3 * (p->y + y));
        }
        batch->errors[n] = (unsigned)flagged;
    }
}

// As in kernels/views.cu, after its cameras.
struct View {
    char cameras[208];
    Address pixels, mask, depths, out, arrays[3];
    unsigned size[2], source[2], channels, form;
};

// An image as it is, as bytes, without mask and depths.
static Result show(const struct View *view) {
    if (view->mask || view->depths || view->form) return INVALID_VALUE;
    memcpy((char *)(uintptr_t)view->out + view->arrays[0], (const char *)(uintptr_t)view->pixels,
           (size_t)view->channels * view->size[0] * view->size[1]);
    return 0;
}

// Of each window: all pixels are its first one, and more by the taps across.
static void resize(const struct Batch *batch, unsigned windows) {
    for (unsigned n = 0; n < windows; n++) {
        const struct Resize *r = &batch->resizes[n];
        if (batch->errors[r->picture]) continue;
        const unsigned char *first = batch->work + r->images[0] + r->skips[0];
        const int level = *first + (int)r->across.taps;
        memset(batch->work + r->images[2], level, (size_t)r->pitches[2] * r->down.outputs);
    }
}

// As in kernels/crops.cu.
struct Row {
    Address pixels, tables, grey;
    unsigned width, height, across_taps, down_taps, out_width, out_height, flags, steps;
    struct {
        unsigned kind;
        float amount;
    } step[8];
};

static int has_contrast(const struct Row *row) {
    for (unsigned n = 0; n < row->steps; n++)
        if (row->step[n].kind == 9) return 1;
    return 0;
}

struct Emission {
    float unit, mean[3], std[3];
    unsigned order, dtype, nhwc, height, width;
};

// kernels/crop_sets.cu, in C: one thread for each block.
#define KERNEL static
#define __device__
#define __forceinline__ inline __attribute__((unused))
#define __shared__ static
#define __launch_bounds__(threads, blocks)
#define __syncthreads() ((void)0)
#define atomicAdd(to, more) (*(to) += (more))

static struct {
    unsigned x;
} threadIdx, blockIdx, blockDim = {1}, gridDim;

static float __uint_as_float(unsigned bits) {
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

#include "../../kernels/crop_sets.cu"

static unsigned drawn(void) {
    static unsigned state = 1;
    state = state * 1664525u + 1013904223u;
    return state ^ state >> 16;
}

// The tables of an axis. Returns their bytes.
static size_t lie_in_axis(u8 *to, u32 outputs, u32 taps, u32 inputs, int at_random) {
    u32 *starts = (u32 *)to;
    u32 *coefficients = (u32 *)(to + 4 * (size_t)outputs);
    for (u32 o = 0; o < outputs; o++)
        starts[o] = !at_random ? inputs + o % 7u : o % 3u ? drawn() : 0xffffffffu;
    // Of one pixel each, or at random.
    for (u32 i = 0; i < taps * outputs; i++)
        coefficients[i] = at_random ? drawn() : i < outputs ? 0x3fffu : 0;
    return 4 * (size_t)outputs * (1 + (size_t)taps);
}

static void lie_in_tables(u8 *source, const SetCrop *crop, int at_random) {
    if (crop->flags & SET_MASKED) return;
    u8 *to = source + crop->tables;
    for (u32 n = 0; at_random && n < 2 * SET_WEIGHTS; n++)
        ((u32 *)to)[n] = n % 2u ? 0x7fc00000u : drawn();
    to += 2 * 4 * SET_WEIGHTS;
    to += lie_in_axis(to, crop->out_width, crop->across_taps, crop->width, at_random);
    lie_in_axis(to, crop->out_height, crop->down_taps, crop->height, at_random);
}

// All crops of a batch, as the kernel makes them.
static void make_crops(unsigned blocks, void **a) {
    const int at_random = lies("tables");
    for (u32 n = 0; (at_random || lies("ends")) && n < *(u32 *)a[2]; n++)
        lie_in_tables(*(u8 **)a[0], *(const SetCrop **)a[1] + n, at_random);
    gridDim.x = blocks;
    for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++)
        crop_sets(*(const u8 **)a[0], *(const SetCrop **)a[1], *(u32 *)a[2],
                  *(const SetForm **)a[3], *(u8 **)a[4], *(u64 *)a[5], *(u64 *)a[6], *(u8 **)a[7]);
}

// Of each row: the first byte of its tables, then everywhere that of its pixels; in
// rows with contrast the second byte is the sum of the launch before, which counts
// the first byte of the pixels thrice. Rows that are masked are zeros.
Result cuLaunchKernel(struct Function *function, unsigned x, unsigned y, unsigned z,
                      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                      void *stream, void **arguments, void **extra) {
    IN_CONTEXT("cuLaunchKernel");
    if (!strncmp(function->name, "jpeg_", 5)) {
        if (extra || !x || y != 1 || z != 1 || block_x > 1024 || block_y != 1 || block_z != 1 ||
            shared > function->shared)
            return INVALID_VALUE;
        // Before it takes its time, so that who reads the log knows.
        say("cuLaunchKernel %s %u x %u x %u %s", function->name, x, y, z, stream_name(stream));
        // Four blocks a picture, and the tables of a resize.
        if (!strcmp(function->name, "jpeg_rows")) copy(arguments[0], *(unsigned *)arguments[1], x / 4);
        if (!strcmp(function->name, "jpeg_tables")) decode(arguments[0], x);
        // Two passes, of 64 blocks a window.
        if (!strcmp(function->name, "jpeg_second_pass")) resize(arguments[0], x / 64);
        return 0;
    }
    if (!strcmp(function->name, "crop_sets")) {
        if (extra || !x || y != 1 || z != 1 || block_x != SET_THREADS || block_y != 1 ||
            block_z != 1 || shared)
            return INVALID_VALUE;
        make_crops(x, arguments);
        say("cuLaunchKernel crop_sets %u x %u x %u %s", x, y, z, stream_name(stream));
        return 0;
    }
    if (!strcmp(function->name, "views")) {
        say("cuLaunchKernel views %u x %u x %u %s", x, y, z, stream_name(stream));
        return show(arguments[0]);
    }
    const char *tables = *(const char **)arguments[0], *pixels = *(const char **)arguments[1];
    struct Row *rows = *(struct Row **)arguments[2];
    const struct Emission *emission = arguments[3];
    char *out = *(char **)arguments[5];
    const unsigned sums = *(const unsigned *)arguments[6];
    // u8, f16, f32, bf16.
    static const size_t elements[] = {1, 2, 4, 2};
    const size_t len = (size_t)emission->height * emission->width *
                       (emission->order == 2 ? 1 : 3) * elements[emission->dtype & 3];
    if (extra || block_x * block_y * block_z != 256 || shared > 48 << 10 || z > 65535)
        return INVALID_VALUE;
    for (unsigned row = 0; row < z; row++) {
        // Another launch makes it.
        if (rows[row].flags & 16) continue;
        const int masked = rows[row].flags & 8, contrast = !masked && has_contrast(&rows[row]);
        if (sums) {
            // Left of an earlier batch.
            if (rows[row].grey) return INVALID_VALUE;
            if (contrast) rows[row].grey = 3 * (unsigned char)pixels[rows[row].pixels];
            continue;
        }
        memset(out + row * len, masked ? 0 : pixels[rows[row].pixels], len);
        if (!masked) out[row * len] = tables[rows[row].tables];
        if (contrast) out[row * len + 1] = (char)rows[row].grey;
    }
    say("cuLaunchKernel %s %u x %u x %u %s %s", function->name, x, y, z, stream_name(stream),
        sums ? "sums" : "rows");
    return 0;
}
