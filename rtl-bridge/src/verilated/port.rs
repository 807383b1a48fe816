//! Pins: bound once by name, then read and written in place.
//!
//! A handle is an address within the C++ model and the number of the [`Simulation`] that owns it. Each access goes
//! through that simulation and checks the number (a compare; measured at under half a percent of a shell's cycle), so a
//! handle is a plain copyable value that can neither outlive nor race its top. Ports of packed instances ("instance i
//! in bits w·i+w-1 : w·i", as upstream packs them) are bound instance by instance.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering};

use bitvec::order::Lsb0;
use bitvec::slice::BitSlice;

use super::Simulation;
use crate::ffi::bridge as ffi;

/// A port as the top declares it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortInfo {
    /// Name in the RTL.
    pub name: String,
    /// Driven by the testbench.
    pub is_input: bool,
    /// Width.
    pub width_bits: u32,
    storage_bytes: u8,
    address: usize,
}

/// A name that could not be bound.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PortError {
    /// The top has no such port.
    #[error("the top has no port `{0}`")]
    Unknown(String),
    /// It has, in the other direction.
    #[error("port `{name}` is an {}", if *is_input { "input" } else { "output" })]
    Direction {
        /// The port.
        name: String,
        /// What it is.
        is_input: bool,
    },
    /// It has, of another width.
    #[error("port `{name}` is {width_bits} bits wide, {asked}")]
    Width {
        /// The port.
        name: String,
        /// Its width.
        width_bits: u32,
        /// What was asked for.
        asked: String,
    },
}

/// Types that a narrow pin can be read as.
pub trait Value: Copy + private::Sealed {
    /// Most bits that it holds.
    const BITS: u32;
    #[doc(hidden)]
    fn from_bits(bits: u64) -> Self;
    #[doc(hidden)]
    fn to_bits(self) -> u64;
}

mod private {
    pub trait Sealed {}
}

macro_rules! value {
    ($($type:ty, $bits:literal;)*) => {$(
        impl private::Sealed for $type {}
        impl Value for $type {
            const BITS: u32 = $bits;
            #[inline]
            fn from_bits(bits: u64) -> Self {
                bits as $type
            }
            #[inline]
            fn to_bits(self) -> u64 {
                u64::from(self)
            }
        }
    )*};
}

value! { u8, 8; u16, 16; u32, 32; u64, 64; }

impl private::Sealed for bool {}
impl Value for bool {
    const BITS: u32 = 1;
    #[inline]
    fn from_bits(bits: u64) -> Self {
        bits != 0
    }
    #[inline]
    fn to_bits(self) -> u64 {
        u64::from(self)
    }
}

/// At most 64 bits of a port: which integer they lie in, and where in it.
///
/// # Invariants
/// `address` with `storage` lies within a port of the top of simulation `owner`, aligned for it up to 4 bytes;
/// `mask << shift` lies within the storage and within the port's width.
#[derive(Clone, Copy, Debug)]
struct Lane {
    address: *mut u8,
    mask: u64,
    owner: u32,
    shift: u8,
    storage: Storage,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Storage {
    /// One bit, with a byte to itself.
    Bit,
    Bytes1,
    Bytes2,
    Bytes4,
    /// A 64-bit integer, or two 32-bit words of an array, which are aligned for 32 bits only.
    Bytes8,
    /// Three of them.
    Words12,
}

// SAFETY: a lane is only an address; it is dereferenced in `read` and `write` alone, which hold a reference to the
// simulation that owns it.
unsafe impl Send for Lane {}
// SAFETY: as above.
unsafe impl Sync for Lane {}

impl Lane {
    /// Valid, ready, last and pulses are all bytes: that case is inlined, and the others are a call, as a jump table at
    /// each access costs 3 % of a shell's cycle.
    #[inline]
    fn read(&self, simulation: &Simulation) -> u64 {
        // Not assert_eq, here and below: it would take the field's address, and with it the whole handle into memory.
        assert!(self.owner == simulation.id, "a port of another simulation");
        if self.storage > Storage::Bytes1 {
            // SAFETY: `simulation` is the owner and is borrowed.
            return unsafe { read_wide(self.address, self.storage, self.shift, self.mask) };
        }
        // SAFETY: the invariants say that the address is that of a live byte, since the simulation `owner` is alive in
        // our hands; nobody writes meanwhile, since all writers need `&mut Simulation`.
        let whole = unsafe { self.address.read() };
        u64::from(whole) >> self.shift & self.mask
    }

    #[inline]
    fn write(&self, simulation: &mut Simulation, value: u64) {
        assert!(self.owner == simulation.id, "a port of another simulation");
        if self.storage == Storage::Bit {
            // SAFETY: as in `read`; nobody reads or writes meanwhile, since we hold the simulation's only reference.
            return unsafe { self.address.write((value & 1) as u8) };
        }
        if self.storage != Storage::Bytes1 {
            // SAFETY: `simulation` is the owner and is borrowed exclusively.
            return unsafe { write_wide(self.address, self.storage, self.shift, self.mask, value) };
        }
        let (clear, bits) = (!(self.mask << self.shift), (value & self.mask) << self.shift);
        // SAFETY: as in `read`; nobody reads or writes meanwhile, since we hold the simulation's only reference. Bits
        // beyond the port's width stay zero, as Verilator wants them, because the mask lies within the width.
        unsafe { self.address.write(self.address.read() & clear as u8 | bits as u8) }
    }
}

/// The read of a lane that is no byte. Its parts are passed one by one: a reference to the lane would make each read of a
/// byte, too, put the lane into memory first.
///
/// # Safety
/// They are those of a lane whose simulation is borrowed.
#[inline(never)]
unsafe fn read_wide(address: *mut u8, storage: Storage, shift: u8, mask: u64) -> u64 {
    if storage == Storage::Bytes2 {
        // Looked at most often, so that it goes before the jump.
        // SAFETY: as below.
        return u64::from(unsafe { address.cast::<u16>().read() }) >> shift & mask;
    }
    // SAFETY: with the caller's promise, the lane's invariants give a live integer, or words, of this size.
    let whole = unsafe {
        match storage {
            Storage::Bit | Storage::Bytes1 => u64::from(address.read()),
            Storage::Bytes2 => u64::from(address.cast::<u16>().read()),
            Storage::Bytes4 => u64::from(address.cast::<u32>().read()),
            Storage::Bytes8 => address.cast::<u64>().read_unaligned(),
            Storage::Words12 => return (read_three_words(address) >> shift) as u64 & mask,
        }
    };
    whole >> shift & mask
}

/// The write, likewise.
///
/// # Safety
/// They are those of a lane whose simulation is borrowed exclusively.
#[inline(never)]
unsafe fn write_wide(address: *mut u8, storage: Storage, shift: u8, mask: u64, value: u64) {
    let (clear, bits) = (!(mask << shift), (value & mask) << shift);
    // SAFETY: as in `read_wide`; the bits beyond the width as in `Lane::write`.
    unsafe {
        match storage {
            Storage::Bit | Storage::Bytes1 => address.write(address.read() & clear as u8 | bits as u8),
            Storage::Bytes2 => {
                let at = address.cast::<u16>();
                at.write(at.read() & clear as u16 | bits as u16);
            }
            Storage::Bytes4 => {
                let at = address.cast::<u32>();
                at.write(at.read() & clear as u32 | bits as u32);
            }
            Storage::Bytes8 => {
                let at = address.cast::<u64>();
                at.write_unaligned(at.read_unaligned() & clear | bits);
            }
            Storage::Words12 => {
                let mask = u128::from(mask) << shift;
                let whole = read_three_words(address) & !mask | u128::from(value) << shift & mask;
                address.cast::<u64>().write_unaligned(whole as u64);
                address.add(8).cast::<u32>().write_unaligned((whole >> 64) as u32);
            }
        }
    }
}

/// # Safety
/// As of [`read_wide`], for [`Storage::Words12`].
unsafe fn read_three_words(address: *mut u8) -> u128 {
    // SAFETY: the caller's promise covers twelve bytes.
    unsafe {
        let low = address.cast::<u64>().read_unaligned();
        let high = address.add(8).cast::<u32>().read_unaligned();
        u128::from(low) | u128::from(high) << 64
    }
}

/// An input pin of at most 64 bits.
#[derive(Clone, Copy, Debug)]
pub struct Input<T>(Lane, PhantomData<T>);

/// An output pin of at most 64 bits.
#[derive(Clone, Copy, Debug)]
pub struct Output<T>(Lane, PhantomData<T>);

/// Whole bytes of a port, as many as it has: the storage of wide ports, byte 0 being bits 7:0.
///
/// # Invariants
/// `len_bytes` bytes at `address` lie within a port of the top of simulation `owner`; `last_mask` keeps what of the last
/// byte is within the port's width.
#[derive(Clone, Copy, Debug)]
struct Bytes {
    address: *mut u8,
    len_bytes: usize,
    width_bits: usize,
    owner: u32,
    last_mask: u8,
}

// SAFETY: as for `Lane`.
unsafe impl Send for Bytes {}
// SAFETY: as for `Lane`.
unsafe impl Sync for Bytes {}

impl Bytes {
    #[inline]
    fn read<'s>(&self, simulation: &'s Simulation) -> &'s [u8] {
        assert!(self.owner == simulation.id, "a port of another simulation");
        // SAFETY: by the invariants the bytes belong to the top of the simulation that is borrowed for 's; whoever
        // changes them needs `&mut Simulation`, which this borrow excludes. The bytes are initialised: Verilator's
        // constructors set every signal.
        unsafe { std::slice::from_raw_parts(self.address, self.len_bytes) }
    }

    #[inline]
    fn write(&self, simulation: &mut Simulation, bytes: &[u8]) {
        assert!(self.owner == simulation.id, "a port of another simulation");
        assert!(bytes.len() <= self.len_bytes, "{} bytes into a port of {}", bytes.len(), self.len_bytes);
        if let Ok(beat) = <&[u8; 64]>::try_from(bytes) {
            // A full beat, by far the most frequent: of known size, it is copied without a call.
            // SAFETY: as below.
            unsafe { self.address.cast::<[u8; 64]>().write(*beat) };
        } else {
            // SAFETY: the target is in bounds by the assertion and the invariants, the two can't overlap since `simulation`
            // is borrowed exclusively and `bytes` is not from it.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.address, bytes.len()) };
        }
        if bytes.len() == self.len_bytes && self.last_mask != 0xff {
            // SAFETY: the last byte is in bounds, `len_bytes` being at least 1.
            unsafe { *self.address.add(self.len_bytes - 1) &= self.last_mask };
        }
    }
}

impl Bytes {
    fn write_byte(&self, simulation: &mut Simulation, at: usize, value: u8) {
        assert!(self.owner == simulation.id, "a port of another simulation");
        assert!(at < self.len_bytes, "byte {at} of a port of {}", self.len_bytes);
        let mask = if at + 1 == self.len_bytes { self.last_mask } else { 0xff };
        // SAFETY: in bounds by the assertion and the invariants; `simulation` is borrowed exclusively, so nobody else
        // reads or writes meanwhile. Bits beyond the port's width stay zero.
        unsafe { self.address.add(at).write(value & mask) };
    }
}

/// A wide input, by bytes.
#[derive(Clone, Copy, Debug)]
pub struct WideInput(Bytes);

/// A wide output, by bytes.
#[derive(Clone, Copy, Debug)]
pub struct WideOutput(Bytes);

impl WideOutput {
    /// Bytes in it.
    pub fn len_bytes(&self) -> usize {
        self.0.len_bytes
    }
}

impl WideInput {
    /// Address and length.
    pub(super) fn range(&self) -> (usize, usize) {
        (self.0.address as usize, self.0.len_bytes)
    }

    /// What it is driven to.
    pub(super) fn driven<'s>(&self, simulation: &'s Simulation) -> &'s [u8] {
        self.0.read(simulation)
    }

    /// Bytes in it.
    pub fn len_bytes(&self) -> usize {
        self.0.len_bytes
    }
}

/// Several one-byte output pins, asked at once whether any is high: most edges find all of them low.
///
/// # Invariants
/// Each window lies within the top of simulation `owner`.
#[derive(Clone, Copy, Debug)]
pub struct AnyOf {
    /// In place, for they are looked at before most edges; those that are not needed have an empty mask.
    windows: [Window; 3],
    owner: u32,
}

/// Eight bytes of the top, and which of their bits count.
#[derive(Clone, Copy, Debug)]
struct Window {
    address: *const u8,
    mask: u64,
}

// SAFETY: as for `Lane`.
unsafe impl Send for AnyOf {}
// SAFETY: as for `Lane`.
unsafe impl Sync for AnyOf {}

/// Up to four one-bit inputs with a byte to each, driven at once: a shell's clocks.
///
/// # Invariants
/// The first `count` addresses are those of one-bit inputs of the top of simulation `owner`.
#[derive(Clone, Copy, Debug)]
pub struct BitPins {
    addresses: [*mut u8; 4],
    count: usize,
    owner: u32,
}

// SAFETY: as for `Lane`.
unsafe impl Send for BitPins {}
// SAFETY: as for `Lane`.
unsafe impl Sync for BitPins {}

pub(super) fn next_id() -> u32 {
    // Relaxed: only uniqueness counts. Four billion simulations in one process do not come to be.
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl PortInfo {
    pub(super) fn new(info: ffi::PortInfo) -> PortInfo {
        let ffi::PortInfo { name, is_input, storage_bytes, width_bits, address } = info;
        PortInfo { name, is_input, width_bits, storage_bytes, address }
    }

    fn wrong_width(&self, asked: String) -> PortError {
        PortError::Width { name: self.name.clone(), width_bits: self.width_bits, asked }
    }

    /// Bits `low` … `low + width - 1`.
    fn lane(&self, owner: u32, low: u32, width: u32) -> Lane {
        debug_assert!((1..=64).contains(&width) && low + width <= self.width_bits, "checked when bound");
        let mask = u64::MAX >> (64 - width);
        let address = self.address as *mut u8;
        let storage = match self.storage_bytes {
            1 if self.width_bits == 1 => Storage::Bit,
            1 => Storage::Bytes1,
            2 => Storage::Bytes2,
            4 => Storage::Bytes4,
            8 => Storage::Bytes8,
            _ => return self.word_lane(owner, low, width, mask),
        };
        Lane { address, mask, owner, shift: low as u8, storage }
    }

    /// Within an array of words: the fewest words that hold the bits. They exist, since the last one holds a bit of ours.
    fn word_lane(&self, owner: u32, low: u32, width: u32, mask: u64) -> Lane {
        let (word, shift) = (low / 32, low % 32);
        let storage = match shift + width {
            ..=32 => Storage::Bytes4,
            33..=64 => Storage::Bytes8,
            _ => Storage::Words12,
        };
        let address = (self.address + 4 * word as usize) as *mut u8;
        Lane { address, mask, owner, shift: shift as u8, storage }
    }
}

impl Simulation {
    /// All ports of the top.
    pub fn ports(&self) -> &[PortInfo] {
        &self.ports
    }

    /// Bind an input of at most 64 bits.
    ///
    /// # Errors
    /// [`PortError`]: no such input, or wider than `T`.
    pub fn input<T: Value>(&self, name: &str) -> Result<Input<T>, PortError> {
        self.input_of(name, 0, 1)
    }

    /// Bind an output of at most 64 bits.
    ///
    /// # Errors
    /// [`PortError`]: no such output, or wider than `T`.
    pub fn output<T: Value>(&self, name: &str) -> Result<Output<T>, PortError> {
        self.output_of(name, 0, 1)
    }

    /// Bind instance `index` of `count` instances that an input packs.
    ///
    /// # Errors
    /// As [`Simulation::input`]; and when the width is no multiple of `count`.
    pub fn input_of<T: Value>(&self, name: &str, index: u32, count: u32) -> Result<Input<T>, PortError> {
        Ok(Input(self.bind_lane(name, Some(true), index, count, T::BITS)?, PhantomData))
    }

    /// Bind instance `index` of `count` instances that an output packs.
    ///
    /// # Errors
    /// As [`Simulation::output`]; and when the width is no multiple of `count`.
    pub fn output_of<T: Value>(&self, name: &str, index: u32, count: u32) -> Result<Output<T>, PortError> {
        Ok(Output(self.bind_lane(name, Some(false), index, count, T::BITS)?, PhantomData))
    }

    /// Bind instance `index` of `count` of a port of either direction, to read only.
    ///
    /// # Errors
    /// As [`Simulation::output_of`], but for the direction.
    pub fn watch_of<T: Value>(&self, name: &str, index: u32, count: u32) -> Result<Output<T>, PortError> {
        Ok(Output(self.bind_lane(name, None, index, count, T::BITS)?, PhantomData))
    }

    /// Bind instance `index` of `count` of a port of either direction by bytes, to read only.
    ///
    /// # Errors
    /// As [`Simulation::wide_output`], but for the direction.
    pub fn watch_wide(&self, name: &str, index: u32, count: u32) -> Result<WideOutput, PortError> {
        Ok(WideOutput(self.bind_bytes(name, None, index, count)?))
    }

    /// Bind an input by bytes, whole (`0, 1`) or instance `index` of `count`.
    ///
    /// # Errors
    /// [`PortError`]: no such input, or an instance that is not made of whole bytes.
    pub fn wide_input(&self, name: &str, index: u32, count: u32) -> Result<WideInput, PortError> {
        Ok(WideInput(self.bind_bytes(name, Some(true), index, count)?))
    }

    /// Bind an output by bytes, whole (`0, 1`) or instance `index` of `count`.
    ///
    /// # Errors
    /// [`PortError`]: no such output, or an instance that is not made of whole bytes.
    pub fn wide_output(&self, name: &str, index: u32, count: u32) -> Result<WideOutput, PortError> {
        Ok(WideOutput(self.bind_bytes(name, Some(false), index, count)?))
    }

    /// Read an output.
    ///
    /// # Panics
    /// When the port belongs to another simulation, here and in the methods below.
    #[inline]
    pub fn get<T: Value>(&self, port: Output<T>) -> T {
        T::from_bits(port.0.read(self))
    }

    /// Prepare to ask many pins at once. Verilator lays narrow ports side by side, so that a few loads see them all. `None`
    /// when a pin is not stored in a byte, when they lie in more than three groups of eight bytes, or when the top is too
    /// small: then ask one by one.
    pub fn any_of(&self, pins: &[Output<bool>]) -> Option<AnyOf> {
        let start = self.ports.iter().map(|port| port.address).min()?;
        let end = self.ports.iter().map(|port| port.address + usize::from(port.storage_bytes.max(4))).max()?;
        if end - start < 8 || pins.iter().any(|pin| pin.0.storage > Storage::Bytes1 || pin.0.owner != self.id) {
            return None;
        }
        let mut lanes: Vec<Lane> = pins.iter().map(|pin| pin.0).collect();
        lanes.sort_by_key(|lane| lane.address as usize);
        let mut windows: Vec<Window> = Vec::new();
        for lane in lanes {
            let address = lane.address as usize;
            let fits = windows.last().is_some_and(|window| address < window.address as usize + 8);
            if !fits {
                // All ports are members of one C++ object; a window between the first and the last of them is in it.
                windows.push(Window { address: address.min(end - 8) as *const u8, mask: 0 });
            }
            if let Some(window) = windows.last_mut() {
                let byte = address - window.address as usize;
                window.mask |= (lane.mask << lane.shift) << (8 * byte);
            }
        }
        let first = *windows.first()?;
        windows.resize(windows.len().max(3), Window { mask: 0, ..first });
        Some(AnyOf { windows: windows.try_into().ok()?, owner: self.id })
    }

    /// Prepare to drive several pins at once. `None` when there are more than four, or one has no byte to itself: then drive
    /// them one by one.
    pub fn bit_pins(&self, pins: &[Input<bool>]) -> Option<BitPins> {
        let mut bits = BitPins { addresses: [std::ptr::null_mut(); 4], count: pins.len(), owner: self.id };
        if pins.len() > bits.addresses.len() {
            return None;
        }
        for (address, pin) in bits.addresses.iter_mut().zip(pins) {
            if pin.0.storage != Storage::Bit || pin.0.owner != self.id {
                return None;
            }
            *address = pin.0.address;
        }
        Some(bits)
    }

    /// Drive pin n of all to bit n.
    #[inline]
    pub fn set_bits(&mut self, pins: &BitPins, bits: u32) {
        assert!(pins.owner == self.id, "ports of another simulation");
        for (n, address) in pins.addresses.iter().take(pins.count).enumerate() {
            // SAFETY: by the invariants this is a live byte of the top that is in our hands, and nobody else reads or writes
            // meanwhile, since we hold the simulation's only reference.
            unsafe { address.write((bits >> n & 1) as u8) };
        }
    }

    /// Is any of the pins high?
    #[inline]
    pub fn any(&self, pins: &AnyOf) -> bool {
        assert!(pins.owner == self.id, "ports of another simulation");
        // SAFETY: each window lies within the top, which is alive in our hands and which nobody writes meanwhile.
        let high = |window: &Window| unsafe { window.address.cast::<u64>().read_unaligned() } & window.mask;
        let [first, second, third] = &pins.windows;
        high(first) | high(second) | high(third) != 0
    }

    /// Drive an input. The design sees it at the next [`Simulation::eval`]. Bits beyond the pin's width are cut.
    #[inline]
    pub fn set<T: Value>(&mut self, port: Input<T>, value: T) {
        port.0.write(self, value.to_bits());
    }

    /// What an input is driven to.
    #[inline]
    pub fn driven<T: Value>(&self, port: Input<T>) -> T {
        T::from_bits(port.0.read(self))
    }

    /// The bytes of a wide output.
    #[inline]
    pub fn bytes(&self, port: &WideOutput) -> &[u8] {
        port.0.read(self)
    }

    /// The bits of a wide output, bit 0 first.
    pub fn bits(&self, port: &WideOutput) -> &BitSlice<u8, Lsb0> {
        &BitSlice::from_slice(port.0.read(self))[..port.0.width_bits]
    }

    /// Drive the low bytes of a wide input; the rest keep their value.
    ///
    /// # Panics
    /// When `bytes` is longer than the port.
    #[inline]
    pub fn set_bytes(&mut self, port: &WideInput, bytes: &[u8]) {
        port.0.write(self, bytes);
    }

    /// Change a byte of an output, behind the RTL's back.
    ///
    /// # Panics
    /// When the port has no such byte.
    pub(super) fn disturb_byte(&mut self, port: &WideOutput, at: usize, value: u8) {
        port.0.write_byte(self, at, value);
    }

    /// All inputs to 0: like every signal they start at random, but nobody is there to drive them so.
    pub(super) fn clear_inputs(&mut self) {
        let inputs: Vec<PortInfo> = self.ports.iter().filter(|port| port.is_input).cloned().collect();
        for port in inputs {
            let zeros = vec![0; port.width_bits.div_ceil(8) as usize];
            if let Ok(pin) = self.wide_input(&port.name, 0, 1) {
                self.set_bytes(&pin, &zeros);
            }
        }
    }

    fn find(&self, name: &str, is_input: Option<bool>) -> Result<&PortInfo, PortError> {
        let port =
            self.ports.iter().find(|port| port.name == name).ok_or_else(|| PortError::Unknown(name.to_string()))?;
        if is_input.is_none_or(|wanted| port.is_input == wanted) {
            Ok(port)
        } else {
            Err(PortError::Direction { name: name.to_string(), is_input: port.is_input })
        }
    }

    fn instance(
        &self,
        name: &str,
        is_input: Option<bool>,
        index: u32,
        count: u32,
    ) -> Result<(&PortInfo, u32, u32), PortError> {
        let port = self.find(name, is_input)?;
        if count == 0 || index >= count || port.width_bits % count != 0 {
            return Err(port.wrong_width(format!("which does not hold instance {index} of {count}")));
        }
        let width = port.width_bits / count;
        Ok((port, index * width, width))
    }

    fn bind_lane(
        &self,
        name: &str,
        is_input: Option<bool>,
        index: u32,
        count: u32,
        bits: u32,
    ) -> Result<Lane, PortError> {
        let (port, low, width) = self.instance(name, is_input, index, count)?;
        if width > bits {
            return Err(port.wrong_width(format!("{width} each; at most {bits} were expected")));
        }
        Ok(port.lane(self.id, low, width))
    }

    fn bind_bytes(&self, name: &str, is_input: Option<bool>, index: u32, count: u32) -> Result<Bytes, PortError> {
        let (port, low, width) = self.instance(name, is_input, index, count)?;
        if count > 1 && width % 8 != 0 {
            return Err(port.wrong_width("whose instances are no whole bytes".to_string()));
        }
        let spare = (8 - width % 8) % 8;
        Ok(Bytes {
            address: (port.address + low as usize / 8) as *mut u8,
            len_bytes: width.div_ceil(8) as usize,
            width_bits: width as usize,
            owner: self.id,
            last_mask: 0xff >> spare,
        })
    }
}
