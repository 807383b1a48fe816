//! What a program's addresses stand for. No address of the host ever enters a register.
//!
//! | address | what |
//! |---|---|
//! | below 2^32 | the packet: `0x1000_0000 + generation × 0x4_0000 + offset in its buffer` |
//! | 1 << 32 | the stack: 8 frames of 512 bytes, of which those of functions that run can be touched |
//! | 2 << 32 | the context, `struct xdp_md`: aligned loads of 4 bytes |
//! | 3 << 32 | keys that `bpf_for_each_map_elem` shows, read-only |
//! | (16 + m) << 32 | values of map m, slot by slot |
//! | 0x7f00 … + m | map m itself: for helpers only |
//! | 0x3f80 … + f | function f, to be called back: for helpers only |
//!
//! The packet lies below 4 GiB because the context has its borders in 32 bits. Its generation goes on with each change of
//! a border, so that old pointers fault, as the verifier would refuse them.

use crate::buff::XdpBuff;
use crate::fault::{FaultKind, Place};
use crate::map::Map;

pub(crate) const FRAMES: usize = 8;
pub(crate) const FRAME_BYTES: usize = 512;
pub(crate) const STACK_BYTES: usize = FRAMES * FRAME_BYTES;
pub(crate) const STACK: u64 = 1 << 32;
pub(crate) const CONTEXT: u64 = 2 << 32;
const CONTEXT_BYTES: usize = 24;
pub(crate) const KEYS: u64 = 3 << 32;
const MAP_REGION: u64 = 16;
const HANDLE: u64 = 0x7f00_0000_0000_0000;
const CALLBACK: u64 = HANDLE >> 1;
const PACKET: u64 = 0x1000_0000;
const PACKET_STRIDE: u64 = 0x4_0000;

/// Most maps of a VM: regions of values stay far from handles.
pub(crate) const MAPS_MAX: usize = 1 << 16;

/// The address of a map's value.
pub(crate) fn value_address(map: u32, offset: u64) -> u64 {
    ((MAP_REGION + u64::from(map)) << 32) + offset
}

pub(crate) fn handle_address(map: u32) -> u64 {
    HANDLE | u64::from(map)
}

pub(crate) fn callback_address(function: u32) -> u64 {
    CALLBACK | u64::from(function)
}

pub(crate) fn callback_function(address: u64) -> Option<u32> {
    (address & !0xffff_ffff == CALLBACK).then_some(address as u32)
}

/// The map of a handle, if there is such a map.
pub(crate) fn handle_map(address: u64, maps: &[Map]) -> Option<u32> {
    let map = u32::try_from(address ^ HANDLE).ok()?;
    ((map as usize) < maps.len()).then_some(map)
}

/// All that a running program can touch.
pub(crate) struct Memory<'a, 'b> {
    pub(crate) buff: &'a mut XdpBuff<'b>,
    pub(crate) maps: &'a mut [Map],
    pub(crate) stack: &'a mut [u8],
    /// Bytes of the stack that belong to functions that run.
    pub(crate) stack_len: usize,
    keys: &'a mut [u8],
    /// Length of the key that each depth of calls shows, or 0.
    key_lens: [usize; FRAMES],
    context: [u8; CONTEXT_BYTES],
    generation: u64,
    /// Address of the first byte of metadata.
    packet_first: u64,
}

impl<'a, 'b> Memory<'a, 'b> {
    pub(crate) fn new(
        buff: &'a mut XdpBuff<'b>,
        maps: &'a mut [Map],
        stack: &'a mut [u8],
        keys: &'a mut [u8],
        ifindex: u32,
        queue: u32,
    ) -> Self {
        let mut context = [0; CONTEXT_BYTES];
        context[12..16].copy_from_slice(&ifindex.to_le_bytes());
        context[16..20].copy_from_slice(&queue.to_le_bytes());
        let mut memory = Self {
            buff,
            maps,
            stack,
            stack_len: FRAME_BYTES,
            keys,
            key_lens: [0; FRAMES],
            context,
            generation: 0,
            packet_first: 0,
        };
        memory.set_borders();
        memory
    }

    /// The packet's borders changed: pointers that the program has are stale.
    pub(crate) fn new_generation(&mut self) {
        self.generation = (self.generation + 1) & 255;
        self.set_borders();
    }

    /// `data`, `data_end`, `data_meta`.
    fn set_borders(&mut self) {
        let base = PACKET + self.generation * PACKET_STRIDE;
        let address = |offset: usize| base + offset as u64;
        self.packet_first = address(self.buff.first());
        for (at, offset) in [(0, self.buff.start()), (4, self.buff.end()), (8, self.buff.first())] {
            // A packet's address has 32 bits: see the table above.
            self.context[at..at + 4].copy_from_slice(&(address(offset) as u32).to_le_bytes());
        }
    }

    /// Read `N` bytes, if they can be read.
    #[inline(always)]
    pub(crate) fn get<const N: usize>(&self, address: u64) -> Option<[u8; N]> {
        // The low half is the offset in its region.
        let at = address as u32 as usize;
        let found = match address >> 32 {
            0 => self.buff.window().get(address.wrapping_sub(self.packet_first) as usize..)?.first_chunk(),
            1 => self.stack.get(at..self.stack_len)?.first_chunk(),
            2 if N == 4 && at.is_multiple_of(4) => self.context.get(at..)?.first_chunk(),
            3 => self.key(at, N)?.first_chunk(),
            region => {
                let map = self.map(region)?;
                let range = map.window(at as u32, N)?;
                map.bytes().get(range.start..)?.first_chunk()
            }
        };
        found.copied()
    }

    /// Write `N` bytes, if they can be written.
    #[inline(always)]
    pub(crate) fn set<const N: usize>(&mut self, address: u64, value: [u8; N]) -> bool {
        let at = address as u32 as usize;
        let place = match address >> 32 {
            0 => {
                let at = address.wrapping_sub(self.packet_first) as usize;
                self.buff.window_mut().get_mut(at..).and_then(<[u8]>::first_chunk_mut)
            }
            1 => self.stack.get_mut(at..self.stack_len).and_then(<[u8]>::first_chunk_mut),
            2 | 3 => None,
            region => region.checked_sub(MAP_REGION).and_then(|map| self.maps.get_mut(map as usize)).and_then(|map| {
                let range = map.window(at as u32, N)?;
                map.bytes_mut()?.get_mut(range.start..)?.first_chunk_mut()
            }),
        };
        place.map(|place| *place = value).is_some()
    }

    /// Read `N` bytes for a helper.
    pub(crate) fn load<const N: usize>(&self, address: u64) -> Result<[u8; N], FaultKind> {
        self.get(address).ok_or_else(|| self.violation(address, N, false))
    }

    /// Write `N` bytes for a helper.
    pub(crate) fn store<const N: usize>(&mut self, address: u64, value: [u8; N]) -> Result<(), FaultKind> {
        if self.set(address, value) { Ok(()) } else { Err(self.violation(address, N, true)) }
    }

    /// A piece of memory that a helper reads. One of no bytes can be anywhere.
    pub(crate) fn bytes(&self, address: u64, len: usize) -> Result<&[u8], FaultKind> {
        if len == 0 {
            return Ok(&[]);
        }
        let at = address as u32 as usize;
        let end = at.saturating_add(len);
        let found = match address >> 32 {
            0 => {
                let at = address.wrapping_sub(self.packet_first) as usize;
                self.buff.window().get(at..at.saturating_add(len))
            }
            1 if end <= self.stack_len => self.stack.get(at..end),
            3 => self.key(at, len),
            1 | 2 => None,
            region => self.map(region).and_then(|map| map.bytes().get(map.window(at as u32, len)?)),
        };
        found.ok_or_else(|| self.violation(address, len, false))
    }

    /// A piece of memory that a helper writes.
    pub(crate) fn bytes_mut(&mut self, address: u64, len: usize) -> Result<&mut [u8], FaultKind> {
        if len == 0 {
            return Ok(&mut []);
        }
        // Looked at twice: a borrow that is returned on one way only can't be said in Rust yet.
        if self.try_bytes_mut(address, len).is_none() {
            return Err(self.violation(address, len, true));
        }
        Ok(self.try_bytes_mut(address, len).unwrap_or(&mut []))
    }

    fn try_bytes_mut(&mut self, address: u64, len: usize) -> Option<&mut [u8]> {
        let at = address as u32 as usize;
        let end = at.saturating_add(len);
        match address >> 32 {
            0 => {
                let at = address.wrapping_sub(self.packet_first) as usize;
                self.buff.window_mut().get_mut(at..at.saturating_add(len))
            }
            1 if end <= self.stack_len => self.stack.get_mut(at..end),
            1..=3 => None,
            region => {
                let map = self.maps.get_mut(region.checked_sub(MAP_REGION)? as usize)?;
                let range = map.window(at as u32, len)?;
                map.bytes_mut()?.get_mut(range)
            }
        }
    }

    /// Part of a key that is shown.
    fn key(&self, at: usize, len: usize) -> Option<&[u8]> {
        let stride = self.keys.len() / FRAMES;
        let (depth, within) = (at / stride, at % stride);
        let fits = within.saturating_add(len) <= *self.key_lens.get(depth)?;
        if fits { self.keys.get(at..at + len) } else { None }
    }

    /// Show the key of a map's slot at a depth of calls; its address.
    pub(crate) fn show_key(&mut self, depth: usize, map: u32, slot: u32) -> u64 {
        let stride = self.keys.len() / FRAMES;
        let from = depth * stride;
        if let Some(map) = self.maps.get(map as usize) {
            self.key_lens[depth] = map.spec().key_size as usize;
            map.copy_slot_key(slot, &mut self.keys[from..from + stride]);
        }
        KEYS + from as u64
    }

    /// What was shown at a depth is gone.
    pub(crate) fn hide_key(&mut self, depth: usize) {
        self.key_lens[depth] = 0;
    }

    fn map(&self, region: u64) -> Option<&Map> {
        self.maps.get(region.checked_sub(MAP_REGION)? as usize)
    }

    /// Why an access is refused.
    #[cold]
    pub(crate) fn violation(&self, address: u64, len: usize, write: bool) -> FaultKind {
        FaultKind::Access { address, len: len.try_into().unwrap_or(u32::MAX), write, place: self.place(address) }
    }

    /// What an address is nearest to.
    fn place(&self, address: u64) -> Place {
        let offset = address as u32;
        match address >> 32 {
            0 if address < 4096 => Place::Null,
            0 if (PACKET..PACKET + 256 * PACKET_STRIDE).contains(&address) => {
                let generation = (address - PACKET) / PACKET_STRIDE;
                let in_buffer = (address - PACKET) % PACKET_STRIDE;
                let offset = in_buffer as i64 - self.buff.start() as i64;
                if generation == self.generation {
                    Place::Packet { offset, len: self.buff.len_bytes() as u32 }
                } else {
                    Place::StalePacket { offset }
                }
            }
            1 => Place::Stack { offset: i64::from(offset) - self.stack_len as i64 },
            2 => Place::Context { offset },
            3 => Place::Key,
            _ if handle_map(address, self.maps).is_some() => Place::MapHandle { map: offset },
            _ if callback_function(address).is_some() => Place::Function,
            region => match region.checked_sub(MAP_REGION).and_then(|map| Some((map, self.maps.get(map as usize)?))) {
                Some((map_id, map)) => Place::MapValue {
                    map: map_id as u32,
                    offset: map.offset_in_value(offset),
                    size: map.spec().value_size,
                },
                None => Place::Nowhere,
            },
        }
    }
}
