// An nvJPEG without engines, for tests on machines without a device. It stands beside the
// stand-in for the driver (tests/standin_cuda/cuda.c): memory of the device is memory of the
// host. A picture is "decoded" to pixels that follow from its bytes and their place:
//
//   the byte of channel c at column x of line y is (sum of all bytes of the file + 7 c + x + 3 y)
//
// so that a test sees which bytes went where. Bytes that are no JPEG fail their whole batch, of
// which nothing is written then, and the end of a file is not looked for: both as NVIDIA's
// library does. Each call is a line of the driver's log.
//
//   STANDIN_NVJPEG_VERSION=major.minor.patch   12.4.0 when not given
//   STANDIN_NVJPEG_ENGINES=n                   7 when not given
//   STANDIN_NVJPEG_FAIL=name:status:n          the n-th call of `name` answers `status`; with
//                                              n = 0 all of them do
//   STANDIN_NVJPEG_REFUSES=width               a batch that has a picture of this width fails
//   STANDIN_NVJPEG_IDLE=n                      the n-th decode writes nothing and answers 0
//   STANDIN_NVJPEG_HANG=n                      the n-th decode does not return
//   STANDIN_NVJPEG_SLOW=ms                     how long each decode takes
//   STANDIN_NVJPEG_SLOW_STATE=ms               how long a state takes to be made
//
// Compiled with -DWITHOUT_PREALLOCATE it has no nvjpegDecodeBatchedPreAllocate, as a library
// too old.

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { INVALID_PARAMETER = 2, BAD_JPEG = 3, EXECUTION_FAILED = 6 };
enum { HARDWARE = 3, RGBI = 5, CSS_444 = 0 };

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

// The status that is planned for this call; 0 for none.
static int planned(const char *name) {
    static long calls;
    const char *plan = getenv("STANDIN_NVJPEG_FAIL");
    const size_t len = strlen(name);
    if (!plan || strncmp(plan, name, len) || plan[len] != ':') return 0;
    const char *status = plan + len + 1, *nth = strchr(status, ':');
    const long due = nth ? atol(nth + 1) : 1;
    if (++calls != due && due) return 0;
    say("%s answers %d", name, atoi(status));
    return atoi(status);
}

#define PLANNED(name)                      \
    do {                                   \
        const int answer = planned(name);  \
        if (answer) return answer;         \
    } while (0)

struct Handle {
    int states;
};

struct State {
    struct Handle *of;
    int batch;
    int width, height;
};

struct Image {
    unsigned char *channel[4];
    size_t pitch[4];
};


int nvjpegGetProperty(int property, int *value) {
    PLANNED("nvjpegGetProperty");
    int version[3] = {12, 4, 0};
    const char *text = getenv("STANDIN_NVJPEG_VERSION");
    if (text) sscanf(text, "%d.%d.%d", &version[0], &version[1], &version[2]);
    if (property < 0 || property > 2) return INVALID_PARAMETER;
    *value = version[property];
    return 0;
}

int nvjpegCreateEx(int backend, void *device, void *pinned, unsigned flags, struct Handle **handle) {
    PLANNED("nvjpegCreateEx");
    if (backend != HARDWARE || device || pinned || flags) return INVALID_PARAMETER;
    *handle = calloc(1, sizeof **handle);
    say("nvjpegCreateEx %p", (void *)*handle);
    return 0;
}

int nvjpegDestroy(struct Handle *handle) {
    PLANNED("nvjpegDestroy");
    say("nvjpegDestroy %p %d states left", (void *)handle, handle->states);
    free(handle);
    return 0;
}

int nvjpegGetHardwareDecoderInfo(struct Handle *handle, unsigned *engines, unsigned *cores) {
    PLANNED("nvjpegGetHardwareDecoderInfo");
    if (!handle) return INVALID_PARAMETER;
    *engines = (unsigned)number("STANDIN_NVJPEG_ENGINES", 7);
    *cores = 1;
    return 0;
}

int nvjpegJpegStateCreate(struct Handle *handle, struct State **state) {
    PLANNED("nvjpegJpegStateCreate");
    usleep(1000 * (useconds_t)number("STANDIN_NVJPEG_SLOW_STATE", 0));
    *state = calloc(1, sizeof **state);
    (*state)->of = handle;
    handle->states++;
    say("nvjpegJpegStateCreate %p", (void *)*state);
    return 0;
}

int nvjpegJpegStateDestroy(struct State *state) {
    PLANNED("nvjpegJpegStateDestroy");
    say("nvjpegJpegStateDestroy %p", (void *)state);
    state->of->states--;
    free(state);
    return 0;
}

int nvjpegDecodeBatchedInitialize(struct Handle *handle, struct State *state, int batch, int threads,
                                  int output) {
    PLANNED("nvjpegDecodeBatchedInitialize");
    if (!handle || batch < 1 || threads != 1 || output != RGBI) return INVALID_PARAMETER;
    state->batch = batch;
    say("nvjpegDecodeBatchedInitialize %d", batch);
    return 0;
}

#ifndef WITHOUT_PREALLOCATE
int nvjpegDecodeBatchedPreAllocate(struct Handle *handle, struct State *state, int batch, int width,
                                   int height, int sampling, int output) {
    PLANNED("nvjpegDecodeBatchedPreAllocate");
    if (!handle || batch < state->batch || width < 1 || height < 1 || sampling != CSS_444 || output != RGBI)
        return INVALID_PARAMETER;
    state->width = width;
    state->height = height;
    say("nvjpegDecodeBatchedPreAllocate %d of %d x %d", batch, width, height);
    return 0;
}
#endif

// Width and height of the frame header; 0 for what is no JPEG.
static int size_of(const unsigned char *data, size_t len, int *width, int *height) {
    if (len < 4 || data[0] != 0xff || data[1] != 0xd8) return 0;
    for (size_t at = 2; at + 9 < len && data[at] == 0xff; at += 2 + (data[at + 2] << 8 | data[at + 3])) {
        if (data[at + 1] != 0xc0) continue;
        *height = data[at + 5] << 8 | data[at + 6];
        *width = data[at + 7] << 8 | data[at + 8];
        return 1;
    }
    return 0;
}

int nvjpegDecodeBatched(struct Handle *handle, struct State *state, const unsigned char *const *data,
                        const size_t *lengths, struct Image *images, void *stream) {
    static long calls;
    ++calls;
    if (!handle || !stream || state->batch < 1) return INVALID_PARAMETER;
    // What the caller's lists must have.
    say("nvjpegDecodeBatched of %d", state->batch);
    while (calls == number("STANDIN_NVJPEG_HANG", 0)) sleep(1);
    usleep(1000 * (useconds_t)number("STANDIN_NVJPEG_SLOW", 0));
    PLANNED("nvjpegDecodeBatched");
    if (calls == number("STANDIN_NVJPEG_IDLE", 0)) return 0;
    for (int i = 0; i < state->batch; i++) {
        int width, height;
        if (!size_of(data[i], lengths[i], &width, &height)) return BAD_JPEG;
        if (width == number("STANDIN_NVJPEG_REFUSES", 0)) return BAD_JPEG;
        // It would take memory that was not there at the start.
        if (width > state->width || height > state->height) return EXECUTION_FAILED;
        if (images[i].pitch[0] < (size_t)3 * width) return INVALID_PARAMETER;
    }
    for (int i = 0; i < state->batch; i++) {
        int width, height;
        unsigned sum = 0;
        size_of(data[i], lengths[i], &width, &height);
        for (size_t b = 0; b < lengths[i]; b++) sum += data[i][b];
        for (int y = 0; y < height; y++)
            for (int x = 0; x < 3 * width; x++)
                images[i].channel[0][y * images[i].pitch[0] + x] =
                    (unsigned char)(sum + 7 * (x % 3) + x / 3 + 3 * y);
    }
    return 0;
}
