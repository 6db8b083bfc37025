//! seqpacker's default packer as its users call it, and the function inside it that packs lengths alone.
use seqpacker::algorithms::optimized_best_fit_decreasing::optimized_best_fit_decreasing_lengths;
use seqpacker::{PackResult, Packer};
use std::ffi::{c_char, c_void};
use std::ptr::null;

#[unsafe(no_mangle)]
pub extern "C" fn peer_name(way: i32) -> *const c_char {
    match way {
        0 => c"seqpacker, pack_lengths".as_ptr(),
        1 => c"seqpacker, inner function".as_ptr(),
        _ => null(),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn peer_open(length: *const u32, count: i64) -> *mut c_void {
    let lengths = unsafe { std::slice::from_raw_parts(length, count as usize) };
    Box::into_raw(Box::new(lengths.iter().map(|&l| l as usize).collect::<Vec<usize>>())) as *mut c_void
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn peer_close(lengths: *mut c_void) {
    drop(unsafe { Box::from_raw(lengths as *mut Vec<usize>) });
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn peer_pack(lengths: *mut c_void, way: i32, capacity: i64, made: *mut *mut c_void) -> i64 {
    let lengths = unsafe { &*(lengths as *const Vec<usize>) };
    let capacity = capacity as usize;
    let (packs, found) = if way == 0 {
        match Packer::new(capacity).pack_lengths(lengths) {
            Ok(result) => (result.packs.len(), Box::into_raw(Box::new(result)) as *mut c_void),
            Err(_) => return -1,
        }
    } else {
        match optimized_best_fit_decreasing_lengths(lengths, capacity) {
            Ok(bins) => (bins.len(), Box::into_raw(Box::new(bins)) as *mut c_void),
            Err(_) => return -1,
        }
    };
    unsafe { *made = found };
    packs as i64
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn peer_free(way: i32, made: *mut c_void) {
    if way == 0 {
        drop(unsafe { Box::from_raw(made as *mut PackResult) });
    } else {
        drop(unsafe { Box::from_raw(made as *mut Vec<Vec<usize>>) });
    }
}
