//! A replacement for `cryptography-cffi`, which gives OpenSSL's functions to pyOpenSSL and needs `cffi` and the
//! interpreter's headers. `cryptography` itself only reads a version and one constant there. This module also makes
//! OpenSSL take its random numbers from the host.

use std::{
    ffi::{c_double, c_int, c_ulong, c_void},
    ptr,
};

use pyo3::{
    exceptions::{PyAttributeError, PyImportError, PyRuntimeError},
    types::{PyModule, PyModuleMethods as _},
    Bound, Py, PyAny, PyResult, Python,
};

/// Creates the module `_openssl`.
pub fn create_module(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    random::draw_from_host()?;
    let module = PyModule::new(py, "_openssl")?;
    module.add("lib", Py::new(py, Library)?)?;
    module.add("ffi", Py::new(py, Interface)?)?;
    Ok(module)
}

/// The part of OpenSSL that Python sees.
#[pyo3::pyclass(frozen)]
struct Library;

#[pyo3::pymethods]
impl Library {
    #[getter(CRYPTOGRAPHY_PACKAGE_VERSION)]
    fn package_version(&self) -> &'static [u8] {
        let about = include_str!("../../../cryptography/__about__.py");
        let version = about.split_once("__version__ = \"").and_then(|(_, rest)| rest.split_once('"'));
        version.map_or(b"", |(version, _)| version.as_bytes())
    }

    #[getter(Cryptography_HAS_EVP_PKEY_DHX)]
    fn has_evp_pkey_dhx(&self) -> u8 {
        1
    }

    #[pyo3(name = "OpenSSL_version_num")]
    fn version_number(&self) -> c_ulong {
        // SAFETY: the function has no arguments and returns a constant.
        unsafe { openssl_sys::OpenSSL_version_num() }
    }

    /// Returns the names that `cryptography` copies, without those that any object has.
    fn __dir__(&self) -> Vec<&'static str> {
        vec!["CRYPTOGRAPHY_PACKAGE_VERSION", "Cryptography_HAS_EVP_PKEY_DHX", "OpenSSL_version_num"]
    }

    /// Returns 0 for all other optional features, which means absent.
    fn __getattr__(&self, name: String) -> PyResult<u8> {
        if name.starts_with("Cryptography_HAS_") {
            Ok(0)
        } else {
            Err(PyAttributeError::new_err(absent(&name)))
        }
    }
}

/// The part of `cffi` that Python sees.
#[pyo3::pyclass(frozen)]
struct Interface;

#[pyo3::pymethods]
impl Interface {
    /// Returns its argument, which is a Python value already.
    fn string(&self, value: Py<PyAny>) -> Py<PyAny> {
        value
    }

    fn __getattr__(&self, name: String) -> PyResult<u8> {
        // Libraries with optional support for pyOpenSSL expect an import error.
        if name.starts_with("__") {
            Err(PyAttributeError::new_err(name))
        } else {
            Err(PyImportError::new_err(absent(&name)))
        }
    }
}

fn absent(name: &str) -> String {
    format!("{name} is not there: pyOpenSSL cannot be used in the sandbox")
}

/// Replaces the only function of libssl that the crate `openssl` calls.
#[no_mangle]
extern "C" fn OPENSSL_init_ssl(options: u64, settings: *const c_void) -> c_int {
    unsafe extern "C" {
        fn OPENSSL_init_crypto(options: u64, settings: *const c_void) -> c_int;
    }
    // SAFETY: these are the caller's arguments, of the types that libcrypto declares. libcrypto ignores libssl's
    // options.
    unsafe { OPENSSL_init_crypto(options, settings) }
}

/// OpenSSL's random numbers, taken from the host and so from the hook's own seed.
///
/// OpenSSL's own generator keeps its state in memory, and packing takes a snapshot of the memory. All units would
/// create the same keys.
mod random {
    use super::*;

    /// OpenSSL's `RAND_METHOD`.
    #[repr(C)]
    struct Method {
        seed: extern "C" fn(*const c_void, c_int) -> c_int,
        bytes: extern "C" fn(*mut c_void, c_int) -> c_int,
        cleanup: Option<extern "C" fn()>,
        add: extern "C" fn(*const c_void, c_int, c_double) -> c_int,
        pseudorandom: extern "C" fn(*mut c_void, c_int) -> c_int,
        status: extern "C" fn() -> c_int,
    }

    static METHOD: Method = Method { seed, bytes, cleanup: None, add, pseudorandom: bytes, status };

    /// The most bytes of one call of libc's `getentropy`.
    const MOST: usize = 256;

    unsafe extern "C" {
        fn RAND_set_rand_method(method: *const Method) -> c_int;
        fn getentropy(buffer: *mut c_void, length: usize) -> c_int;
    }

    pub(crate) fn draw_from_host() -> PyResult<()> {
        // SAFETY: OpenSSL keeps the pointer to a static value, whose type has the layout of `RAND_METHOD`.
        match unsafe { RAND_set_rand_method(ptr::from_ref(&METHOD)) } {
            1 => Ok(()),
            _ => Err(PyRuntimeError::new_err("OpenSSL does not take random numbers from the host")),
        }
    }

    extern "C" fn bytes(buffer: *mut c_void, length: c_int) -> c_int {
        let Ok(length) = usize::try_from(length) else { return 0 };
        let mut filled = 0;
        while filled < length {
            let next = MOST.min(length - filled);
            // SAFETY: OpenSSL gives a buffer of this length, and `filled + next` is within it.
            if unsafe { getentropy(buffer.byte_add(filled), next) } != 0 {
                return 0;
            }
            filled += next;
        }
        1
    }

    // The host's source needs no additional entropy.
    extern "C" fn seed(_: *const c_void, _: c_int) -> c_int {
        1
    }

    extern "C" fn add(_: *const c_void, _: c_int, _: c_double) -> c_int {
        1
    }

    extern "C" fn status() -> c_int {
        1
    }
}
