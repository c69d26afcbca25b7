//! nvJPEG: where its library is, and the few functions of it that the engines need.
//!
//! In the consumer. The library is looked for when it is asked for, as the driver is, and
//! is never linked. Types and numbers are those of `nvjpeg.h` of 12.4.0 (build 76) and of
//! 13.3.2 (build 43), which are the same for what is used here.
//!
//! The places, in this order; the first library that loads and has all functions is taken:
//!
//! 1. by its name alone: what this process has loaded already, `LD_LIBRARY_PATH`, the
//!    system's folders;
//! 2. beside this program or extension, where Python's wheels lie
//!    (`nvidia/cu13/lib`, `nvidia/nvjpeg/lib`);
//! 3. in the Python environment of `VIRTUAL_ENV` or `CONDA_PREFIX`, and in `CONDA_PREFIX/lib`;
//! 4. in the folders of a CUDA toolkit (`/usr/local/cuda`).
//!
//! A library of CUDA 13 needs a driver that serves CUDA 13, and is not looked for without.
//!
//! Nothing is freed: a library that was loaded stays.

use std::env;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_uint, c_void};
use std::fmt;
use std::fs;
use std::mem::transmute_copy;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};

use cudarc::driver::sys::CUstream;

use crate::device::found::EngineInfo;
use crate::error::{Error, Result};

/// `nvjpegHandle_t`, `nvjpegJpegState_t`.
pub(super) type RawHandle = *mut c_void;
pub(super) type RawState = *mut c_void;

/// `NVJPEG_BACKEND_HARDWARE`.
pub(super) const BACKEND_HARDWARE: c_int = 3;
/// `NVJPEG_FLAGS_DEFAULT`. With `NVJPEG_FLAGS_UPSAMPLING_WITH_INTERPOLATION` colours would be
/// interpolated, as libjpeg-turbo does it: on an H100 at 3,500 images/s in the place of 22,000,
/// with memory that is taken and given back in each call, which stops the device.
pub(super) const FLAGS: c_uint = 0;
/// `NVJPEG_OUTPUT_RGBI`.
pub(super) const OUTPUT_RGBI: c_int = 5;
/// `NVJPEG_CSS_444`: no other sampling takes more memory.
pub(super) const CSS_444: c_int = 0;
/// `NVJPEG_MAX_COMPONENT`.
const MAX_COMPONENT: usize = 4;

/// `nvjpegImage_t`: where a picture goes.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct RawImage {
    channel: [u64; MAX_COMPONENT],
    pitch: [usize; MAX_COMPONENT],
}

impl RawImage {
    /// Rows of RGB that begin `pitch` bytes apart.
    pub(super) fn rgb(address: u64, pitch: usize) -> Self {
        Self {
            channel: [address, 0, 0, 0],
            pitch: [pitch, 0, 0, 0],
        }
    }
}

/// Types of functions, which give a status.
macro_rules! functions {
    ($($name:ident($($argument:ty),*);)*) => {
        $(
            // SAFETY: the arguments are those of `nvjpeg.h`; who calls it says why each is right.
            type $name = unsafe extern "C" fn($($argument),*) -> c_int;
        )*
    };
}

functions! {
    // Property, where its value goes.
    GetProperty(c_int, *mut c_int);
    // Backend, allocators of device and pinned memory, flags, where the handle goes.
    Create(c_int, *const c_void, *const c_void, c_uint, *mut RawHandle);
    Destroy(RawHandle);
    // Where the numbers of engines, and of cores of one, go.
    DecoderInfo(RawHandle, *mut c_uint, *mut c_uint);
    StateCreate(RawHandle, *mut RawState);
    StateDestroy(RawState);
    // Pictures of a batch, CPU threads, form of the output.
    Initialize(RawHandle, RawState, c_int, c_int, c_int);
    // Pictures, width, height, sampling, form of the output.
    PreAllocate(RawHandle, RawState, c_int, c_int, c_int, c_int, c_int);
    // Files and their lengths, where pictures go, stream.
    Decode(RawHandle, RawState, *const *const u8, *const usize, *mut RawImage, CUstream);
}

/// The functions, of a library that was found.
pub(super) struct Library {
    pub(super) create: Create,
    pub(super) destroy: Destroy,
    pub(super) decoder_info: DecoderInfo,
    pub(super) state_create: StateCreate,
    pub(super) state_destroy: StateDestroy,
    pub(super) initialize: Initialize,
    pub(super) pre_allocate: PreAllocate,
    pub(super) decode: Decode,
    pub(super) found: Found,
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.found)
    }
}

/// Which library it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// Major, minor, patch.
    pub(crate) version: (u32, u32, u32),
    /// As the loader knows it.
    pub(crate) path: PathBuf,
}

impl Found {
    /// As the numeric profile names it.
    pub(super) fn name(&self) -> String {
        let (major, minor, patch) = self.version;
        format!("nvJPEG {major}.{minor}.{patch}")
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.path.display())
    }
}

/// What a status other than 0 means, by `nvjpegStatus_t`.
pub(super) fn refused(name: &str, status: c_int) -> Error {
    let (word, advice) = match status {
        1 => ("NOT_INITIALIZED", ""),
        2 => ("INVALID_PARAMETER", ""),
        3 => ("BAD_JPEG", ""),
        4 => ("JPEG_NOT_SUPPORTED", ""),
        5 => (
            "ALLOCATOR_FAILURE",
            ": the device has too little memory left: lower batch or depth",
        ),
        6 => (
            "EXECUTION_FAILED",
            ": is a device visible, and does the driver serve the CUDA that this library is of?",
        ),
        7 => (
            "ARCH_MISMATCH",
            ": this device has no JPEG engines (A100, H100 and later data centre cards have): \
             decode on cpu",
        ),
        8 => ("INTERNAL_ERROR", ""),
        9 => ("IMPLEMENTATION_NOT_SUPPORTED", ""),
        10 => ("INCOMPLETE_BITSTREAM", ""),
        _ => ("unknown status", ""),
    };
    Error::Device {
        what: format!("{name}: {word} ({status}){advice}"),
    }
}

/// Whether a call was done.
pub(super) fn done(name: &str, status: c_int) -> Result<()> {
    match status {
        0 => Ok(()),
        status => Err(refused(name, status)),
    }
}

impl Library {
    /// What it is, for a device with so many engines.
    pub(super) fn with_engines(&self, engines: u32) -> EngineInfo {
        EngineInfo {
            library: self.found.name(),
            path: self.found.path.clone(),
            engines,
        }
    }

    /// The first library that can be used with a driver that serves CUDA of this major
    /// version.
    ///
    /// # Errors
    /// All places that were tried, and what to install.
    pub(super) fn open(driver_major: u32) -> Result<Self> {
        let mut tried = Vec::new();
        for candidate in candidates(driver_major, &Places::of_this_process()) {
            match Self::load(&candidate) {
                Ok(library) => return Ok(library),
                Err(why) => tried.push(why),
            }
        }
        Err(Error::Device {
            what: format!(
                "no libnvjpeg for a driver that serves CUDA {driver_major}: install the wheel \
                 nvidia-nvjpeg-cu12 (or nvidia-nvjpeg with CUDA 13) beside featherload, or the \
                 CUDA toolkit, or name its folder in LD_LIBRARY_PATH; tried {}",
                tried.join("; ")
            ),
        })
    }

    /// The library of this name or path.
    pub(super) fn load(path: &OsStr) -> std::result::Result<Self, String> {
        let named = path.to_string_lossy();
        let c_path = CString::new(path.as_bytes()).map_err(|e| format!("{named}: {e}"))?;
        // SAFETY: the path ends with a zero. Loading runs the library's constructors; it is
        // NVIDIA's, or what the user put in its place.
        let library = unsafe { libc::dlopen(c_path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        let library = NonNull::new(library).ok_or_else(|| last_error(&named))?;
        let get = Symbols {
            library,
            named: &named,
        };
        let property: GetProperty = get.function(c"nvjpegGetProperty")?;
        let mut version = [0; 3];
        for (which, value) in (0..).zip(&mut version) {
            // SAFETY: the function of this name has this type (`nvjpeg.h`); the pointer is to
            // a live integer.
            let status = unsafe { property(which, value) };
            done("nvjpegGetProperty", status).map_err(|e| format!("{named}: {e}"))?;
        }
        let [major, minor, patch] = version.map(|n| n.max(0) as u32);
        if !matches!(major, 12 | 13) {
            return Err(format!(
                "{named}: version {major}.{minor}.{patch}, and 12 and 13 are known"
            ));
        }
        let create: Create = get.function(c"nvjpegCreateEx")?;
        Ok(Self {
            create,
            destroy: get.function(c"nvjpegDestroy")?,
            decoder_info: get.function(c"nvjpegGetHardwareDecoderInfo")?,
            state_create: get.function(c"nvjpegJpegStateCreate")?,
            state_destroy: get.function(c"nvjpegJpegStateDestroy")?,
            initialize: get.function(c"nvjpegDecodeBatchedInitialize")?,
            pre_allocate: get.function(c"nvjpegDecodeBatchedPreAllocate")?,
            decode: get.function(c"nvjpegDecodeBatched")?,
            found: Found {
                version: (major, minor, patch),
                path: object_of(create as *const c_void).unwrap_or_else(|| path.into()),
            },
        })
    }
}

/// Functions of a library.
struct Symbols<'a> {
    library: NonNull<c_void>,
    named: &'a str,
}

impl Symbols<'_> {
    /// The function of this name, whose type `F` must be: a pointer to a function.
    fn function<F: Copy>(&self, name: &CStr) -> std::result::Result<F, String> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        // SAFETY: the library is loaded, and the name ends with a zero.
        let address = unsafe { libc::dlsym(self.library.as_ptr(), name.as_ptr()) };
        match address.is_null() {
            true => Err(last_error(self.named)),
            // SAFETY: both are a pointer (asserted above); that the function of this name has
            // this type is what `nvjpeg.h` says, see the page.
            false => Ok(unsafe { transmute_copy::<*mut c_void, F>(&address) }),
        }
    }
}

/// Why the loader refused, in its words, which name the file.
fn last_error(named: &str) -> String {
    // SAFETY: takes nothing; the text is this thread's until its next call of the loader.
    let text = unsafe { libc::dlerror() };
    match NonNull::new(text) {
        None => format!("{named}: the loader gives no reason"),
        // SAFETY: not null, ends with a zero, and is read before the next call.
        Some(text) => unsafe { CStr::from_ptr(text.as_ptr()) }
            .to_string_lossy()
            .into_owned(),
    }
}

/// The file of the library, or of the program, that this address belongs to.
fn object_of(address: *const c_void) -> Option<PathBuf> {
    let mut info = libc::Dl_info {
        dli_fname: ptr::null(),
        dli_fbase: ptr::null_mut(),
        dli_sname: ptr::null(),
        dli_saddr: ptr::null_mut(),
    };
    // SAFETY: the loader compares the address and reads nothing there; the other pointer is
    // to a live struct.
    let found = unsafe { libc::dladdr(address, &mut info) };
    let name: *const c_char = info.dli_fname;
    if found == 0 || name.is_null() {
        return None;
    }
    // SAFETY: not null; the loader's own text, which stays while the object is loaded.
    let name = unsafe { CStr::from_ptr(name) };
    Some(OsStr::from_bytes(name.to_bytes()).into())
}

/// Where libraries may lie, of a process.
#[derive(Debug, Default)]
struct Places {
    /// This program, or the extension that this code is in.
    own: Option<PathBuf>,
    /// Folders of Python environments.
    environments: Vec<PathBuf>,
}

impl Places {
    fn of_this_process() -> Self {
        let variable = |name| {
            env::var_os(name)
                .filter(|v| !v.is_empty())
                .map(PathBuf::from)
        };
        let own = object_of(Self::of_this_process as fn() -> Self as *const c_void);
        Self {
            own: own.and_then(|path| fs::canonicalize(path).ok()),
            environments: ["VIRTUAL_ENV", "CONDA_PREFIX"]
                .into_iter()
                .filter_map(variable)
                .collect(),
        }
    }

    /// Folders in which Python's packages lie.
    fn packages(&self) -> Vec<PathBuf> {
        let mut folders = Vec::new();
        // The extension is in `featherload/`, the executable in `featherload/_bin/`.
        if let Some(own) = &self.own {
            let above = own.ancestors().skip(2).take(2);
            folders.extend(above.map(Path::to_path_buf));
        }
        for environment in &self.environments {
            let Ok(entries) = fs::read_dir(environment.join("lib")) else {
                continue;
            };
            let mut pythons: Vec<_> = entries.flatten().map(|e| e.path()).collect();
            pythons.retain(|path| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                name.starts_with("python3")
            });
            pythons.sort();
            folders.extend(pythons.into_iter().map(|path| path.join("site-packages")));
        }
        folders
    }
}

/// Names and paths to try, the best first.
fn candidates(driver_major: u32, places: &Places) -> Vec<std::ffi::OsString> {
    let versions: &[(&str, &str)] = match driver_major {
        ..13 => &[("libnvjpeg.so.12", "nvidia/nvjpeg/lib")],
        _ => &[
            ("libnvjpeg.so.13", "nvidia/cu13/lib"),
            ("libnvjpeg.so.12", "nvidia/nvjpeg/lib"),
        ],
    };
    let mut all: Vec<std::ffi::OsString> = versions.iter().map(|(name, _)| name.into()).collect();
    let mut add = |path: PathBuf| {
        if path.is_file() {
            all.push(path.into_os_string());
        }
    };
    for packages in places.packages() {
        for (name, folder) in versions {
            add(packages.join(folder).join(name));
        }
    }
    for (name, _) in versions {
        for environment in &places.environments {
            add(environment.join("lib").join(name));
        }
        add(Path::new("/usr/local/cuda/lib64").join(name));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structs_are_those_of_the_header() {
        assert_eq!(size_of::<RawImage>(), 64);
        let image = RawImage::rgb(7, 9);
        assert_eq!((image.channel, image.pitch), ([7, 0, 0, 0], [9, 0, 0, 0]));
    }

    #[test]
    fn wheels_are_found_beside_the_program_and_in_environments() {
        let dir = tempfile::tempdir().unwrap();
        let file = |path: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, b"").unwrap();
            path.into_os_string()
        };
        let beside = file("site/nvidia/nvjpeg/lib/libnvjpeg.so.12");
        let newer = file("venv/lib/python3.12/site-packages/nvidia/cu13/lib/libnvjpeg.so.13");
        let conda = file("conda/lib/libnvjpeg.so.12");
        for own in [
            "site/featherload/_f.so",
            "site/featherload/_bin/featherload",
        ] {
            let places = Places {
                own: Some(dir.path().join(own)),
                environments: vec![dir.path().join("venv"), dir.path().join("conda")],
            };
            let of = |major| {
                let mut found = candidates(major, &places);
                found.retain(|path| !path.to_string_lossy().starts_with("/usr/local/"));
                found
            };
            let names = |n: &[&str]| {
                n.iter()
                    .map(Into::into)
                    .collect::<Vec<std::ffi::OsString>>()
            };
            assert_eq!(
                of(12),
                [
                    names(&["libnvjpeg.so.12"]),
                    vec![beside.clone(), conda.clone()]
                ]
                .concat()
            );
            assert_eq!(
                of(13),
                [
                    names(&["libnvjpeg.so.13", "libnvjpeg.so.12"]),
                    vec![beside.clone(), newer.clone(), conda.clone()],
                ]
                .concat()
            );
        }
    }

    #[test]
    fn what_is_no_library_is_named_with_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("libnvjpeg.so.12");
        fs::write(&path, b"no library").unwrap();
        let why = Library::load(path.as_os_str()).unwrap_err();
        assert!(why.contains("libnvjpeg.so.12"), "{why}");
        // One that lacks the functions.
        let why = Library::load(OsStr::new("libc.so.6")).unwrap_err();
        assert!(why.contains("nvjpegGetProperty"), "{why}");
        // The address of a function of this program.
        let own = Places::of_this_process().own.unwrap();
        assert_eq!(own, fs::canonicalize(env::current_exe().unwrap()).unwrap());
    }
}
