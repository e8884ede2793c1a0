//! The table of functions that the engine calls, and all `unsafe` there is: each asks [`Files`] whether and how much it may
//! do, and has the usual file layer do it. Locks and shared memory go through as they are.
//!
//! What the engine promises of its calls, and every block below rests on: pointers to files and to the layer are those that
//! this layer made or filled in; a file is used between its opening and its closing, by one thread at a time; a buffer is as
//! long as it says.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::ffi::{self, sqlite3_file, sqlite3_int64, sqlite3_io_methods, sqlite3_vfs};

use crate::Shared;
use crate::files::Files;

/// An open file as the engine sees it. The usual layer's file follows it in memory.
#[repr(C)]
struct OpenFile {
    base: sqlite3_file,
    handle: *mut Handle,
}

/// What is known of an open file.
struct Handle {
    disk: &'static Shared,
    path: String,
    /// How often its syncs have failed, as far as this handle has heard.
    heard: u64,
}

/// The second version: it has shared memory, which a WAL needs, and reads no file through mapped memory, which would pass by
/// this layer.
static METHODS: sqlite3_io_methods = sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

/// Makes a file layer over these files known to the engine. It is never taken back.
pub(super) fn register(files: Files) -> &'static Shared {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let name = format!("faulty-disk-{}", COUNT.fetch_add(1, Ordering::Relaxed));
    let for_engine = CString::new(name.as_str()).expect("the name has no zero byte").into_raw();
    let shared: &'static Shared = Box::leak(Box::new(Shared { vfs: name, files: Mutex::new(files) }));
    // SAFETY: the usual layer is a live table of the engine's. Its functions for time, chance and libraries look at nothing of
    // the layer they are called with, so they may stand in another table. Table, name and `shared` are leaked: they live on.
    let code = unsafe {
        let usual = usual();
        let layer = Box::leak(Box::new(sqlite3_vfs {
            szOsFile: size_of::<OpenFile>() as c_int + (*usual).szOsFile,
            pNext: std::ptr::null_mut(),
            zName: for_engine,
            pAppData: std::ptr::from_ref(shared).cast_mut().cast(),
            xOpen: Some(open),
            xDelete: Some(delete),
            xAccess: Some(access),
            xFullPathname: Some(full_pathname),
            ..*usual
        }));
        ffi::sqlite3_vfs_register(layer, 0)
    };
    assert_eq!(code, ffi::SQLITE_OK, "the engine takes a file layer");
    shared
}

/// The engine's usual layer.
fn usual() -> *mut sqlite3_vfs {
    // SAFETY: the name ends with a zero byte.
    let usual = unsafe { ffi::sqlite3_vfs_find(c"unix".as_ptr()) };
    assert!(!usual.is_null(), "the engine has the usual file layer");
    usual
}

/// The disk of a layer.
///
/// # Safety
///
/// The layer was made by [`register`].
unsafe fn disk(layer: *mut sqlite3_vfs) -> &'static Shared {
    // SAFETY: `register` has put it there.
    unsafe { &*(*layer).pAppData.cast::<Shared>() }
}

/// What is known of a file, and the usual layer's file.
///
/// # Safety
///
/// The file was opened by [`open`], is not yet closed, and no other thread uses it during the call of the engine.
unsafe fn parts<'a>(file: *mut sqlite3_file) -> (&'a mut Handle, *mut sqlite3_file) {
    // SAFETY: `open` has filled in the handle, and asked for room for both files, one after the other.
    unsafe { (&mut *(*file.cast::<OpenFile>()).handle, file.cast::<OpenFile>().add(1).cast()) }
}

/// Calls a function of the usual layer's file.
macro_rules! through {
    ($usual:expr, $method:ident $(, $argument:expr)*) => {
        // SAFETY: the file is open, so its table is set; the arguments are the engine's own.
        unsafe {
            let method = (*(*$usual).pMethods).$method.expect("the usual layer has every function");
            method($usual $(, $argument)*)
        }
    };
}

/// A path as text; nothing for a temporary file without a name.
///
/// # Safety
///
/// The path is null or ends with a zero byte.
unsafe fn text(path: *const c_char) -> String {
    match path.is_null() {
        true => String::new(),
        // SAFETY: as the caller has promised.
        false => unsafe { CStr::from_ptr(path) }.to_string_lossy().into_owned(),
    }
}

fn code(done: Result<(), c_int>) -> c_int {
    done.err().unwrap_or(ffi::SQLITE_OK)
}

unsafe extern "C" fn open(
    layer: *mut sqlite3_vfs,
    path: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: see the head of this file.
    let (disk, name) = unsafe { (disk(layer), text(path)) };
    let is_tracked = !name.is_empty();
    let mut flags = flags;
    if disk.files().may_only_read {
        flags &= !(ffi::SQLITE_OPEN_READWRITE | ffi::SQLITE_OPEN_CREATE);
        flags |= ffi::SQLITE_OPEN_READONLY;
    }
    let handle = Box::new(Handle { disk, path: name, heard: 0 });
    // SAFETY: `szOsFile` has asked for this much memory. Without a table, the engine doesn't close a file that isn't open.
    let usual_file: *mut sqlite3_file = unsafe {
        (*file).pMethods = std::ptr::null();
        file.cast::<OpenFile>().add(1).cast()
    };
    let usual = usual();
    // SAFETY: the usual layer gets its own table and its own room, and the path stays alive until the file is closed.
    let code =
        unsafe { ((*usual).xOpen.expect("it opens files"))(usual, path, usual_file, flags, out_flags) };
    if code != ffi::SQLITE_OK {
        return code;
    }
    let handle = Box::leak(handle);
    if is_tracked {
        handle.heard = disk.files().open(&handle.path, || content(usual_file));
    }
    // SAFETY: as above; from here on the file is open.
    unsafe {
        (*file.cast::<OpenFile>()).handle = handle;
        (*file).pMethods = &METHODS;
    }
    ffi::SQLITE_OK
}

/// What is in a file. It is read through its own handle: to open and close it another way would let go of its locks.
fn content(usual: *mut sqlite3_file) -> Vec<u8> {
    let mut size: sqlite3_int64 = 0;
    assert_eq!(through!(usual, xFileSize, &mut size), ffi::SQLITE_OK, "an open file has a size");
    let mut bytes = vec![0; size as usize];
    if size > 0 {
        let code = through!(usual, xRead, bytes.as_mut_ptr().cast(), size as c_int, 0);
        assert_eq!(code, ffi::SQLITE_OK, "an open file can be read");
    }
    bytes
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    // SAFETY: see the head of this file. The handle was leaked by `open`, and nothing uses it from here on.
    let usual = unsafe {
        let (handle, usual) = parts(file);
        drop(Box::from_raw(handle));
        usual
    };
    through!(usual, xClose)
}

unsafe extern "C" fn read(
    file: *mut sqlite3_file,
    buffer: *mut c_void,
    amount: c_int,
    offset: sqlite3_int64,
) -> c_int {
    // SAFETY: see the head of this file.
    let (handle, usual) = unsafe { parts(file) };
    match handle.disk.files().read(&handle.path) {
        Ok(()) => through!(usual, xRead, buffer, amount, offset),
        Err(code) => {
            // SAFETY: the buffer is this long. What a short read doesn't fill, the engine wants to be zero.
            unsafe { buffer.cast::<u8>().write_bytes(0, amount as usize) };
            code
        }
    }
}

unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    buffer: *const c_void,
    amount: c_int,
    offset: sqlite3_int64,
) -> c_int {
    // SAFETY: see the head of this file.
    let (handle, usual) = unsafe { parts(file) };
    // SAFETY: the buffer is this long, and the engine doesn't change it meanwhile.
    let data = unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), amount as usize) };
    // Held until the file is written, so that changes are noted in the order in which they are made.
    let mut files = handle.disk.files();
    let (count, done) = files.write(&handle.path, offset as usize, data);
    match count {
        0 => code(done),
        count => match through!(usual, xWrite, buffer, count as c_int, offset) {
            ffi::SQLITE_OK => code(done),
            failed => failed,
        },
    }
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, size: sqlite3_int64) -> c_int {
    // SAFETY: see the head of this file.
    let (handle, usual) = unsafe { parts(file) };
    let mut files = handle.disk.files();
    match files.truncate(&handle.path, size as usize) {
        Ok(()) => through!(usual, xTruncate, size),
        Err(code) => code,
    }
}

/// Nothing is synced for real: what is durable is what [`Files`] says.
unsafe extern "C" fn sync(file: *mut sqlite3_file, _flags: c_int) -> c_int {
    // SAFETY: see the head of this file.
    let (handle, _) = unsafe { parts(file) };
    code(handle.disk.files().sync(&handle.path, &mut handle.heard))
}

unsafe extern "C" fn delete(layer: *mut sqlite3_vfs, path: *const c_char, sync_folder: c_int) -> c_int {
    // SAFETY: see the head of this file.
    let (disk, name) = unsafe { (disk(layer), text(path)) };
    let mut files = disk.files();
    if files.may_only_read {
        return ffi::SQLITE_IOERR_DELETE;
    }
    files.delete(&name, sync_folder != 0);
    let usual = usual();
    // SAFETY: the usual layer gets its own table.
    unsafe { ((*usual).xDelete.expect("it deletes files"))(usual, path, 0) }
}

unsafe extern "C" fn access(
    _layer: *mut sqlite3_vfs,
    path: *const c_char,
    flags: c_int,
    result: *mut c_int,
) -> c_int {
    let usual = usual();
    // SAFETY: the usual layer gets its own table; the arguments are the engine's own.
    unsafe { ((*usual).xAccess.expect("it looks for files"))(usual, path, flags, result) }
}

unsafe extern "C" fn full_pathname(
    _layer: *mut sqlite3_vfs,
    path: *const c_char,
    length: c_int,
    full: *mut c_char,
) -> c_int {
    let usual = usual();
    // SAFETY: the usual layer gets its own table; the arguments are the engine's own.
    unsafe { ((*usual).xFullPathname.expect("it completes paths"))(usual, path, length, full) }
}

/// Functions that go through as they are.
macro_rules! pass {
    ($($name:ident = $method:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
        $(unsafe extern "C" fn $name(file: *mut sqlite3_file $(, $argument: $type)*) $(-> $result)? {
            // SAFETY: see the head of this file.
            let (_, usual) = unsafe { parts(file) };
            through!(usual, $method $(, $argument)*)
        })*
    };
}

pass! {
    file_size = xFileSize(size: *mut sqlite3_int64) -> c_int;
    lock = xLock(level: c_int) -> c_int;
    unlock = xUnlock(level: c_int) -> c_int;
    check_reserved_lock = xCheckReservedLock(result: *mut c_int) -> c_int;
    file_control = xFileControl(operation: c_int, argument: *mut c_void) -> c_int;
    sector_size = xSectorSize() -> c_int;
    device_characteristics = xDeviceCharacteristics() -> c_int;
    shm_map = xShmMap(page: c_int, size: c_int, extend: c_int, memory: *mut *mut c_void) -> c_int;
    shm_lock = xShmLock(offset: c_int, count: c_int, flags: c_int) -> c_int;
    shm_barrier = xShmBarrier();
    shm_unmap = xShmUnmap(delete: c_int) -> c_int;
}
