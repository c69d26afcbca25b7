//! The house, kept by machine: which way imports point, circles of files, the pages
//! that name the files, which files may hold `unsafe`, and what must not be there at all.
//!
//! - `source`: the text of files; `graph`: which file imports which;
//! - `rooms`: imports of rooms, circles of files inside one;
//! - `map`: the map of rooms in ARCHITECTURE.md, and the pages of folders;
//! - `texts`: lengths, paths and terms of ARCHITECTURE.md and `docs/design/`;
//! - `words`: what the code must not contain;
//! - `names`: names of types; `phrases`: phrases that no text has.
//!
//! Each check takes a tree of files, so that the tests at the end of its file can hand
//! it a wrong one.

mod graph;
mod map;
mod names;
mod phrases;
mod rooms;
mod source;
mod texts;
mod words;

use graph::Graph;
use source::{read_into, tree};

type Layers<'a> = &'a [(&'a str, &'a [&'a str])];

/// A room of the library, and the rooms that it imports: some of those above it.
/// From the bottom to the top.
const LAYERS: Layers<'_> = &[
    ("error", &[]),
    ("sys", &["error"]),
    ("camera", &["sys"]),
    ("picture", &["error", "sys"]),
    ("data", &["error", "sys", "picture"]),
    ("recipe", &["error", "picture"]),
    ("order", &["error", "sys", "recipe"]),
    ("decode_plan", &["error", "picture", "recipe"]),
    ("pixels", &["sys", "picture", "recipe", "decode_plan"]),
    ("targets", &["recipe", "pixels"]),
    ("pool", &["error", "sys"]),
    (
        "device",
        &["error", "sys", "picture", "recipe", "decode_plan", "pool"],
    ),
    ("remote", &["error", "sys", "data", "order", "pool"]),
    (
        "jobs",
        &[
            "error",
            "sys",
            "picture",
            "data",
            "recipe",
            "order",
            "decode_plan",
            "pixels",
            "targets",
            "pool",
            "device",
        ],
    ),
    (
        "memory_plan",
        &[
            "error",
            "sys",
            "picture",
            "data",
            "recipe",
            "decode_plan",
            "pool",
            "jobs",
        ],
    ),
    (
        "loader",
        &[
            "error",
            "sys",
            "picture",
            "data",
            "recipe",
            "order",
            "pool",
            "device",
            "remote",
            "jobs",
            "memory_plan",
        ],
    ),
    (
        "configs",
        &[
            "error", "picture", "data", "recipe", "order", "jobs", "loader",
        ],
    ),
    (
        "options",
        &[
            "error", "picture", "data", "recipe", "order", "pool", "device", "remote", "jobs",
            "loader", "configs",
        ],
    ),
    (
        "cache",
        &[
            "error", "sys", "picture", "data", "pool", "remote", "jobs", "loader", "options",
        ],
    ),
    (
        "scene/data",
        &["error", "sys", "camera", "picture", "data", "options"],
    ),
    ("scene/draw", &["error", "sys", "order"]),
    ("scene/image_store", &["error", "sys"]),
    (
        "scene/jobs",
        &[
            "error",
            "sys",
            "camera",
            "picture",
            "data",
            "recipe",
            "order",
            "pixels",
            "pool",
            "device",
            "jobs",
            "scene/data",
            "scene/draw",
            "scene/image_store",
        ],
    ),
    (
        "scene/memory_plan",
        &[
            "error",
            "picture",
            "data",
            "recipe",
            "decode_plan",
            "pool",
            "memory_plan",
            "scene/jobs",
        ],
    ),
    (
        "scene/run",
        &[
            "error",
            "sys",
            "camera",
            "picture",
            "data",
            "recipe",
            "order",
            "pool",
            "device",
            "jobs",
            "scene/data",
            "scene/draw",
            "scene/image_store",
            "scene/jobs",
            "scene/memory_plan",
        ],
    ),
    (
        "scene/options",
        &[
            "error",
            "picture",
            "pool",
            "device",
            "options",
            "scene/data",
            "scene/draw",
            "scene/run",
        ],
    ),
    ("helper", &["pool", "remote", "jobs", "scene/jobs"]),
    (
        "measure",
        &[
            "error",
            "sys",
            "data",
            "recipe",
            "order",
            "pool",
            "jobs",
            "loader",
            "scene/image_store",
        ],
    ),
    (
        "tests_support",
        &[
            "error", "picture", "data", "recipe", "order", "pool", "jobs",
        ],
    ),
];

/// The modules that a user of the library sees; the others are `pub(crate)`.
const PUBLIC: &[&str] = &[
    "cache",
    "camera",
    "device",
    "error",
    "memory_plan",
    "loader",
    "measure",
    "options",
    "order",
    "recipe",
    "scene",
    "targets",
    "tests_support",
];

/// The files that may, and do, hold `unsafe`, tests included.
const UNSAFE: &[&str] = &[
    "python/rust/batch.rs",
    "python/rust/dlpack.rs",
    "python/rust/held_step.rs",
    "python/rust/tensor.rs",
    "src/camera/unprojector.rs",
    "src/device/cuda/context.rs",
    "src/device/cuda/crop_set_stage.rs",
    "src/device/cuda/crop_stage.rs",
    "src/device/cuda/driver.rs",
    "src/device/cuda/gpu_failure_tests.rs",
    "src/device/cuda/gpu_jpeg_tests.rs",
    "src/device/cuda/gpu_tests.rs",
    "src/device/cuda/image_decoder.rs",
    "src/device/cuda/jpeg_redecode.rs",
    "src/device/cuda/jpeg_lane.rs",
    "src/device/cuda/gpu_jpeg_decoder.rs",
    "src/device/cuda/jpeg_thread_tests.rs",
    "src/device/cuda/crop_kernel.rs",
    "src/device/cuda/mapped_memory.rs",
    "src/device/cuda/memory.rs",
    "src/device/cuda/loaded_kernel.rs",
    "src/device/cuda/pinned_ring.rs",
    "src/device/cuda/ray_stage.rs",
    "src/device/cuda/device_rows.rs",
    "src/device/cuda/scene_stage.rs",
    "src/device/cuda/stage_queue.rs",
    "src/device/cuda/upload_stream.rs",
    "src/device/cuda/view_stage.rs",
    "src/device/cuda/standin_tests.rs",
    "src/picture/jpeg/decode/wide/forms.rs",
    "src/picture/jpeg/decode/wide/kernels.rs",
    "src/picture/jpeg/decode/wide/lanes.rs",
    "src/picture/jpeg/encoder/avx2/lanes.rs",
    "src/picture/jpeg/encoder/avx2/mod.rs",
    "src/picture/jpeg/tests/oracle.rs",
    "src/scene/image_store/content.rs",
    "src/pool/ring/region.rs",
    "src/pool/ring/slots.rs",
    "src/sys/futex.rs",
    "src/sys/memory.rs",
    "src/sys/process.rs",
    "src/sys/sandbox/calls.rs",
    "src/sys/sandbox/files.rs",
    "src/sys/sealed_bytes.rs",
    "src/sys/shared_memory.rs",
    "src/sys/socket.rs",
    "src/sys/stderr.rs",
    "src/sys/storage.rs",
    "src/jobs/decode_ceiling/file_maps.rs",
    "src/jobs/images/coded_batch.rs",
    "src/jobs/sample_input.rs",
    "src/pool/worker/process.rs",
    "src/pixels/augment/inside.rs",
    "src/pixels/augment/opencv_affine/avx2.rs",
    "src/pixels/augment/opencv_affine/mod.rs",
    "src/pixels/augment/opencv_hsv/mod.rs",
    "src/pixels/emit/planes.rs",
    "src/pixels/resample/avx2.rs",
    "src/pixels/resample/passes.rs",
    "src/pixels/resample/sse41.rs",
    "src/pool/worker/sigbus.rs",
];

/// How far above an `unsafe` its SAFETY note may stand.
const NOTE_LINES: usize = 8;

/// Words that must not stand in code outside tests, where, and why.
const ABSENT: &[(&str, &[&str], &str)] = &[
    (
        "src/",
        &[".unwrap()", ".expect(", ".unwrap_err()", ".expect_err("],
        "nothing panics across the API: return an error",
    ),
    (
        LIBRARY,
        &["println!", "print!", "eprintln!", "eprint!", "dbg!"],
        "nothing prints from the library: use tracing",
    ),
    (
        BINARY,
        &["println!", "print!", "eprintln!", "eprint!", "dbg!"],
        "print by `output`, which escapes foreign text",
    ),
    (
        EXTENSION,
        &["internals", "bench_support", "tests_support"],
        "the extension uses the public API, as other programs do",
    ),
    ("src/pool/worker/", THREADS, "a worker is single-threaded"),
    ("src/jobs/", THREADS, "a job runs in workers"),
    ("src/scene/jobs/", THREADS, "a job runs in workers"),
    (
        "src/pool/coordinator/",
        THREADS,
        "the coordinator is single-threaded for life",
    ),
    ("src/pool/worker/", &["cudarc"], "a worker has no CUDA"),
    ("src/jobs/", &["cudarc"], "a worker has no CUDA"),
    ("src/scene/jobs/", &["cudarc"], "a worker has no CUDA"),
    (
        "src/pool/coordinator/",
        &["cudarc"],
        "the coordinator has no CUDA",
    ),
];
/// Files of the command line that write to stdout or stderr by themselves.
const WRITERS: &[&str] = &[
    // All text and JSON.
    "src/bin/featherload/output/mod.rs",
    // Pictures, and questions to the terminal.
    "src/bin/featherload/preview/terminal.rs",
    // Numbers for the process that started it.
    "src/bin/featherload/ceiling.rs",
    "src/bin/featherload/rss/child.rs",
];
const THREADS: &[&str] = &["rayon", "thread::spawn", "thread::scope", "thread::Builder"];
/// All of `src/` but the binary.
const LIBRARY: &str = "library";
const BINARY: &str = "src/bin/";
/// The roots of the executable and of the Python extension.
const EXECUTABLE: &str = "src/bin/featherload/";
const EXTENSION: &str = "python/rust/";
/// Folders of rooms: each folder in one is a room, and its `mod.rs` has re-exports alone.
const WINGS: &[&str] = &["scene"];

/// Types that several files may define, and why.
const REPEATED: &[(&str, &str)] = &[];

#[test]
fn imports_point_one_way() {
    let files = tree();
    none(rooms::unknown_rooms(&files, LAYERS));
    none(rooms::imports(&Graph::new(&files), LAYERS));
    none(rooms::upwards(LAYERS));
}

#[test]
fn every_allowed_import_is_used() {
    none(rooms::unused(&Graph::new(&tree()), LAYERS));
}

#[test]
fn no_files_of_a_room_import_each_other() {
    let mut files = tree();
    read_into("python/rust", &mut files);
    none(rooms::circles(&Graph::new(&files)));
    none(rooms::circles(&Graph::of_crate(&files, EXECUTABLE)));
    none(rooms::circles(&Graph::of_crate(&files, EXTENSION)));
}

#[test]
fn the_map_has_every_room_and_its_imports() {
    let pages = texts::read();
    let (architecture, imports) = (
        texts::find(&pages, "ARCHITECTURE.md"),
        texts::find(&pages, "docs/design/rooms.md"),
    );
    none(map::map(architecture, imports, LAYERS));
}

#[test]
fn design_pages_name_files_that_are_there() {
    none(texts::paths(&texts::read(), &texts::repository()));
}

#[test]
fn design_pages_name_definitions_that_are_there() {
    let wrong = texts::definitions(&texts::read(), &texts::repository(), texts::text_of);
    none(wrong);
}

#[test]
fn design_pages_are_short() {
    none(texts::lengths(&texts::read()));
}

#[test]
fn the_index_of_design_pages_is_complete() {
    none(texts::index(&texts::read()));
}

#[test]
fn the_glossary_is_short() {
    let pages = texts::read();
    none(texts::terms(texts::find(&pages, texts::GLOSSARY)));
}

#[test]
fn every_page_names_the_files_of_its_folder() {
    none(map::pages(&tree()));
}

#[test]
fn comments_name_modules_that_are_there() {
    none(map::references(&tree()));
}

#[test]
fn only_the_public_modules_are_public() {
    none(words::public_modules(&tree()));
}

/// Who stands outside sees the public API only, because the compiler keeps the
/// rest from it; unless a file of the library is compiled in once more.
#[test]
fn the_binary_tests_and_examples_take_no_files_out_of_the_library() {
    let mut files = tree();
    for folder in ["tests", "benches", "examples"] {
        read_into(folder, &mut files);
    }
    none(words::borrowed_files(&files));
}

#[test]
fn unsafe_stands_in_the_listed_files_only_and_says_why() {
    let mut files = tree();
    read_into("python/rust", &mut files);
    none(words::unsafe_code(&files, UNSAFE));
}

#[test]
fn the_command_line_prints_in_one_place() {
    none(words::writers(&tree(), WRITERS));
}

#[test]
fn what_must_not_be_there_is_not() {
    let mut files = tree();
    read_into("python/rust", &mut files);
    none(words::absent(&files));
}

#[test]
fn a_type_name_is_defined_once() {
    assert!(REPEATED.len() <= 15);
    none(names::repeated(&tree(), REPEATED));
}

#[test]
fn a_type_that_other_files_use_has_two_words_or_is_a_term() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let glossary = std::fs::read_to_string(root.join("docs/design/glossary.md")).unwrap();
    none(names::single_words(&tree(), &glossary));
}

#[test]
fn no_text_has_a_phrase_of_the_list() {
    let texts = phrases::texts();
    let found = texts
        .iter()
        .flat_map(|(path, text)| phrases::found(path, text));
    none(found.collect());
}

fn none(violations: Vec<String>) {
    assert!(violations.is_empty(), "\n{}\n", violations.join("\n"));
}
