//! What the helpers do. Each is a few lines from its arguments, r1 to r5, to r0.
//!
//! Behaviour and error numbers: Linux `net/core/filter.c`, `kernel/bpf/helpers.c` and the map files named in
//! [`crate::map`]. A helper's argument that the verifier would have refused is a fault, not an error number.

use crate::errno;
use crate::fault::FaultKind;
use crate::helper::Helper;
use crate::map::{self, Map, MapType};
use crate::memory::{CONTEXT, Memory, callback_function, handle_address, handle_map, value_address};
use crate::network::{IpAddress, fib};
use crate::trace::{self, Trace};
use crate::verdict::{RxMeta, Target, action};
use crate::vm::Program;

/// Most iterations of `bpf_loop` (`BPF_MAX_LOOPS`).
const LOOPS_MAX: u64 = 1 << 23;

/// Most tail calls in a row (`MAX_TAIL_CALL_CNT`).
const TAIL_CALLS_MAX: u32 = 33;

/// Nanoseconds of a jiffy: Debian's kernel counts 250 a second.
const JIFFY_NS: u64 = 4_000_000;

/// What running goes on with.
pub(crate) enum Flow {
    /// r0 has the answer.
    Value(u64),
    /// Another function takes this one's place.
    TailCall(u32),
    /// A function is called `count` times, with the index.
    Loop { function: u32, count: u64, context: u64 },
    /// A function is called for each entry of a map.
    Each { function: u32, map: u32, context: u64 },
}

/// All that helpers work on.
pub(crate) struct Machine<'a, 'b> {
    pub(crate) mem: Memory<'a, 'b>,
    pub(crate) programs: &'a [Program],
    pub(crate) functions: usize,
    pub(crate) key: &'a mut [u8],
    pub(crate) value: &'a mut [u8],
    pub(crate) random: &'a mut u64,
    pub(crate) trace: &'a mut Trace,
    pub(crate) network: &'a crate::network::Network,
    pub(crate) meta: RxMeta,
    pub(crate) redirect: Option<Target>,
    pub(crate) tail_calls: u32,
    pub(crate) lock: Option<u64>,
    /// A ring buffer record was reserved: look at the end whether all were given back.
    pub(crate) reserved: bool,
}

type Answer = Result<Flow, FaultKind>;

fn value(value: u64) -> Answer {
    Ok(Flow::Value(value))
}

/// Zero, or the negative error number.
fn status(result: Result<(), i64>) -> Answer {
    value(result.err().map_or(0, |errno| (-errno).cast_unsigned()))
}

fn error(errno: i64) -> Answer {
    status(Err(errno))
}

impl Machine<'_, '_> {
    /// Call a helper with r1 to r5.
    pub(crate) fn call(&mut self, helper: Helper, args: [u64; 5]) -> Answer {
        use Helper as H;
        let [a1, a2, a3, a4, a5] = args;
        match helper {
            H::MapLookup => self.map_lookup(a1, a2, self.meta.cpu),
            H::MapLookupPercpu => self.map_lookup_percpu(a1, a2, a3),
            H::MapUpdate => self.map_update(a1, a2, a3, a4),
            H::MapDelete => self.map_delete(a1, a2),
            H::MapPush => self.map_push(a1, a2, a3),
            H::MapPop => self.map_pop(helper, a1, a2),
            H::MapPeek => self.map_pop(helper, a1, a2),
            H::KtimeGetNs | H::KtimeGetBootNs | H::KtimeGetCoarseNs | H::KtimeGetTaiNs => value(self.meta.now_ns),
            H::Jiffies64 => value(self.meta.now_ns / JIFFY_NS),
            H::GetPrandom => value(next_random(self.random) >> 32),
            H::GetCpu => value(u64::from(self.meta.cpu)),
            H::GetNumaNode => value(0),
            H::TailCall => self.tail_call(a1, a2, a3),
            H::Redirect => self.redirect(a1, a2),
            H::RedirectMap => self.redirect_map(a1, a2, a3),
            H::CsumDiff => self.csum_diff(a1, a2, a3, a4, a5),
            H::AdjustHead | H::AdjustMeta | H::AdjustTail => self.adjust(helper, a1, a2),
            H::GetBuffLen => {
                self.context(helper, a1)?;
                value(self.mem.buff.len_bytes() as u64)
            }
            H::LoadBytes | H::StoreBytes => self.packet_bytes(helper, a1, a2, a3, a4),
            H::FibLookup => self.fib_lookup(a1, a2, a3, a4),
            H::CheckMtu => self.check_mtu(a1, a2, a3, a4, a5),
            H::SpinLock | H::SpinUnlock => self.spin(helper, a1),
            H::RingOutput => self.ring_output(a1, a2, a3),
            H::RingReserve => self.ring_reserve(a1, a2),
            H::RingSubmit | H::RingDiscard => self.ring_commit(helper, a1),
            H::RingQuery => {
                let map = self.map_of(helper, a1, &[MapType::RingBuf])?;
                value(self.map_mut(map).ring().map_or(0, |ring| ring.query(a2)))
            }
            H::PerfEventOutput => self.perf_event_output(args),
            H::TracePrintk => self.trace_printk(a1, a2, &[a3, a4, a5]),
            H::TraceVprintk => self.trace_vprintk(a1, a2, a3, a4),
            H::Strncmp => self.strncmp(a1, a2, a3),
            H::Loop => self.bpf_loop(a1, a2, a3, a4),
            H::ForEachMapElem => self.for_each(a1, a2, a3, a4),
        }
    }

    /// An argument that has to be a map of one of these types.
    fn map_of(&self, helper: Helper, address: u64, types: &[MapType]) -> Result<u32, FaultKind> {
        let map = handle_map(address, self.mem.maps).ok_or(FaultKind::NotAMap { helper, value: address })?;
        let fits = types.is_empty() || types.contains(&self.mem.maps[map as usize].map_type());
        if fits { Ok(map) } else { Err(FaultKind::MapType { helper, map }) }
    }

    /// A map that [`Self::map_of`] has seen.
    fn map_mut(&mut self, map: u32) -> &mut Map {
        &mut self.mem.maps[map as usize]
    }

    fn context(&self, helper: Helper, address: u64) -> Result<(), FaultKind> {
        if address == CONTEXT { Ok(()) } else { Err(FaultKind::NotTheContext(helper)) }
    }

    fn callback(&self, address: u64) -> Result<u32, FaultKind> {
        let function = callback_function(address).filter(|&function| (function as usize) < self.functions);
        function.ok_or(FaultKind::NotAFunction(address))
    }

    fn read_key(&mut self, map: u32, address: u64) -> Result<usize, FaultKind> {
        let len = self.mem.maps[map as usize].spec().key_size as usize;
        self.key[..len].copy_from_slice(self.mem.bytes(address, len)?);
        Ok(len)
    }

    fn read_value(&mut self, map: u32, address: u64) -> Result<usize, FaultKind> {
        let len = self.mem.maps[map as usize].spec().value_size as usize;
        self.value[..len].copy_from_slice(self.mem.bytes(address, len)?);
        Ok(len)
    }

    fn map_lookup(&mut self, map: u64, key: u64, cpu: u32) -> Answer {
        let map = self.map_of(Helper::MapLookup, map, &[])?;
        let found = &self.mem.maps[map as usize];
        let map_type = found.map_type();
        let lookups = !matches!(
            map_type,
            MapType::RingBuf | MapType::PerfEventArray | MapType::ProgArray | MapType::Queue | MapType::Stack
        );
        if !lookups {
            return Err(FaultKind::MapType { helper: Helper::MapLookup, map });
        }
        let slot = if found.is_indexed() {
            found.array_slot(u32::from_le_bytes(self.mem.load(key)?))
        } else {
            let len = self.read_key(map, key)?;
            self.mem.maps[map as usize].lookup_slot(&self.key[..len])
        };
        let Some(slot) = slot else { return value(0) };
        let found = &self.mem.maps[map as usize];
        if map_type.holds_maps() {
            value(handle_address(found.word(slot)))
        } else {
            value(value_address(map, found.slot_offset(slot, cpu)))
        }
    }

    fn map_lookup_percpu(&mut self, map: u64, key: u64, cpu: u64) -> Answer {
        let types = [MapType::PerCpuArray, MapType::PerCpuHash, MapType::LruPerCpuHash];
        let id = self.map_of(Helper::MapLookupPercpu, map, &types)?;
        let cpu = u32::try_from(cpu).ok().filter(|cpu| *cpu < self.mem.maps[id as usize].cpus());
        cpu.map_or(value(0), |cpu| self.map_lookup(map, key, cpu))
    }

    fn map_update(&mut self, map: u64, key: u64, new: u64, flags: u64) -> Answer {
        let map = self.writable_map(Helper::MapUpdate, map)?;
        let key_len = self.read_key(map, key)?;
        let value_len = self.read_value(map, new)?;
        let cpu = self.meta.cpu;
        let found = &mut self.mem.maps[map as usize];
        let (key, new) = (&self.key[..key_len], &self.value[..value_len]);
        let per_cpu = found.map_type().is_per_cpu();
        let done = if per_cpu { found.update_cpu(key, new, flags, cpu) } else { found.update(key, new, flags) };
        status(done.map_err(map::MapError::errno))
    }

    fn map_delete(&mut self, map: u64, key: u64) -> Answer {
        let map = self.writable_map(Helper::MapDelete, map)?;
        let len = self.read_key(map, key)?;
        status(self.mem.maps[map as usize].delete(&self.key[..len]).map_err(map::MapError::errno))
    }

    /// A map whose entries programs may change: not those that hold devices, programs or maps.
    fn writable_map(&self, helper: Helper, address: u64) -> Result<u32, FaultKind> {
        use MapType as T;
        let types = [T::Array, T::PerCpuArray, T::Hash, T::PerCpuHash, T::LruHash, T::LruPerCpuHash, T::LpmTrie];
        let map = self.map_of(helper, address, &types)?;
        if self.mem.maps[map as usize].spec().read_only { Err(FaultKind::MapType { helper, map }) } else { Ok(map) }
    }

    fn map_push(&mut self, map: u64, new: u64, flags: u64) -> Answer {
        let map = self.map_of(Helper::MapPush, map, &[MapType::Queue, MapType::Stack])?;
        let len = self.read_value(map, new)?;
        status(self.mem.maps[map as usize].push(&self.value[..len], flags).map_err(map::MapError::errno))
    }

    fn map_pop(&mut self, helper: Helper, map: u64, to: u64) -> Answer {
        let map = self.map_of(helper, map, &[MapType::Queue, MapType::Stack])?;
        let len = self.mem.maps[map as usize].spec().value_size as usize;
        match self.mem.maps[map as usize].pop(helper == Helper::MapPop) {
            Ok(bytes) => self.value[..len].copy_from_slice(bytes),
            // The kernel clears what it could not fill.
            Err(_) => {
                self.mem.bytes_mut(to, len)?.fill(0);
                return error(errno::NO_ENTRY);
            }
        }
        self.mem.bytes_mut(to, len)?.copy_from_slice(&self.value[..len]);
        value(0)
    }

    fn tail_call(&mut self, context: u64, map: u64, index: u64) -> Answer {
        self.context(Helper::TailCall, context)?;
        let map = self.map_of(Helper::TailCall, map, &[MapType::ProgArray])?;
        let array = &self.mem.maps[map as usize];
        // The index is an u32, as in the kernel.
        let Some(slot) = array.array_slot(index as u32) else { return error(errno::NO_ENTRY) };
        let Some(program) = self.programs.get(array.word(slot) as usize) else { return error(errno::NO_ENTRY) };
        if self.tail_calls == TAIL_CALLS_MAX {
            return error(errno::NO_ENTRY);
        }
        self.tail_calls += 1;
        Ok(Flow::TailCall(program.function))
    }

    fn redirect(&mut self, ifindex: u64, flags: u64) -> Answer {
        if flags != 0 {
            return value(action::ABORTED);
        }
        self.redirect = Some(Target::Interface { ifindex: ifindex as u32 });
        value(action::REDIRECT)
    }

    fn redirect_map(&mut self, map: u64, key: u64, flags: u64) -> Answer {
        const FALLBACK: u64 = 3;
        const BROADCAST: u64 = 8;
        const EXCLUDE_INGRESS: u64 = 16;
        use MapType as T;
        let map = self.map_of(Helper::RedirectMap, map, &[T::DevMap, T::DevMapHash, T::CpuMap, T::XskMap])?;
        let found = &mut self.mem.maps[map as usize];
        let devices = matches!(found.map_type(), T::DevMap | T::DevMapHash);
        let known = if devices { FALLBACK | BROADCAST | EXCLUDE_INGRESS } else { FALLBACK };
        if flags & !known != 0 {
            return value(action::ABORTED);
        }
        if flags & BROADCAST != 0 {
            let exclude_ingress = flags & EXCLUDE_INGRESS != 0;
            self.redirect = Some(Target::Broadcast { map, exclude_ingress });
            return value(action::REDIRECT);
        }
        let key = key as u32;
        let slot = if found.is_indexed() { found.array_slot(key) } else { found.lookup_slot(&key.to_le_bytes()) };
        let Some(slot) = slot else {
            self.redirect = None;
            return value(flags & FALLBACK);
        };
        let (word, program) = (found.word(slot), found.second_word(slot).checked_sub(1));
        self.redirect = Some(match found.map_type() {
            T::CpuMap => Target::Cpu { map, cpu: key, queue_size: word, program },
            T::XskMap => Target::Socket { map, key, socket: word },
            _ => Target::Device { map, key, ifindex: word, program },
        });
        value(action::REDIRECT)
    }

    fn csum_diff(&mut self, from: u64, from_len: u64, to: u64, to_len: u64, seed: u64) -> Answer {
        // Sizes are u32 in the kernel, whatever the register's upper half holds; the seed too.
        let (from_len, to_len, seed) = (from_len as u32 as usize, to_len as u32 as usize, seed as u32);
        if !(from_len | to_len).is_multiple_of(4) {
            return error(errno::INVALID);
        }
        if from_len == 0 && to_len == 0 {
            return value(u64::from(seed));
        }
        let added = ones_sum(self.mem.bytes(to, to_len)?, seed);
        let sum = if from_len == 0 {
            added
        } else {
            let removed = ones_sum(self.mem.bytes(from, from_len)?, 0);
            ones_add(added, !removed)
        };
        let folded = (sum & 0xffff) + (sum >> 16);
        value(u64::from((folded & 0xffff) + (folded >> 16)))
    }

    fn adjust(&mut self, helper: Helper, context: u64, by: u64) -> Answer {
        self.context(helper, context)?;
        let by = by as u32 as i32;
        let done = match helper {
            Helper::AdjustHead => self.mem.buff.adjust_head(by),
            Helper::AdjustMeta => self.mem.buff.adjust_meta(by),
            _ => self.mem.buff.adjust_tail(by),
        };
        // The verifier takes all packet pointers away, whether or not it worked.
        self.mem.new_generation();
        status(done)
    }

    fn packet_bytes(&mut self, helper: Helper, context: u64, offset: u64, bytes: u64, len: u64) -> Answer {
        const OFFSET_MAX: usize = 0xffff;
        self.context(helper, context)?;
        let (offset, len) = (offset as u32 as usize, len as u32 as usize);
        let fits = offset <= OFFSET_MAX && len <= OFFSET_MAX;
        let range = offset..offset.saturating_add(len);
        // The program's side is checked first: the verifier would have, for any offset.
        if helper == Helper::LoadBytes {
            self.mem.bytes_mut(bytes, len)?;
        } else {
            self.mem.bytes(bytes, len)?;
        }
        if !fits {
            return error(errno::FAULT);
        }
        if range.end > self.mem.buff.len_bytes() {
            return error(errno::INVALID);
        }
        // In pieces, since both sides may be the packet.
        let mut chunk = [0; 64];
        let mut at = 0;
        while at < len {
            let part = (len - at).min(chunk.len());
            let here = range.start + at..range.start + at + part;
            if helper == Helper::LoadBytes {
                chunk[..part].copy_from_slice(&self.mem.buff.data()[here]);
                self.mem.bytes_mut(bytes + at as u64, part)?.copy_from_slice(&chunk[..part]);
            } else {
                chunk[..part].copy_from_slice(self.mem.bytes(bytes + at as u64, part)?);
                self.mem.buff.data_mut()[here].copy_from_slice(&chunk[..part]);
            }
            at += part;
        }
        value(0)
    }

    fn fib_lookup(&mut self, context: u64, params: u64, len: u64, flags: u64) -> Answer {
        /// Size of `struct bpf_fib_lookup`.
        const BYTES: usize = 64;
        const SKIP_NEIGHBOR: u64 = 4;
        const SOURCE: u64 = 0x10;
        const KNOWN: u64 = 1 | 2 | SKIP_NEIGHBOR | 8 | SOURCE | 0x20;
        const INET: u8 = 2;
        const INET6: u8 = 10;
        self.context(Helper::FibLookup, context)?;
        if (len as u32 as usize) < BYTES || flags & !KNOWN != 0 {
            return error(errno::INVALID);
        }
        let network = self.network;
        let params = self.mem.bytes_mut(params, BYTES)?;
        let ifindex = read_u32(params, 8);
        let Some(ingress) = network.interface(ifindex) else {
            let unknown =
                if network.interfaces.is_empty() { Ok(fib::FORWARDING_DISABLED) } else { Err(errno::NO_DEVICE) };
            return unknown.map_or_else(error, value);
        };
        let (to, at, address_len) = match params[0] {
            INET => (IpAddress::V4(array(&params[32..])), 32, 4),
            INET6 => (IpAddress::V6(array(&params[32..])), 32, 16),
            _ => return error(errno::FAMILY),
        };
        if !ingress.forwarding {
            return value(fib::FORWARDING_DISABLED);
        }
        let Some(hop) = network.hop(to) else { return value(fib::NOT_FORWARDED) };
        let packet_len = u32::from(u16::from_le_bytes(array(&params[6..])));
        if packet_len > hop.mtu {
            params[6..8].copy_from_slice(&(hop.mtu as u16).to_le_bytes());
            return value(fib::FRAG_NEEDED);
        }
        params[8..12].copy_from_slice(&hop.route.ifindex.to_le_bytes());
        params[12..16].copy_from_slice(&hop.route.metric.to_le_bytes());
        match hop.route.gateway {
            Some(IpAddress::V4(bytes)) if address_len == 4 => params[at..at + 4].copy_from_slice(&bytes),
            Some(IpAddress::V6(bytes)) if address_len == 16 => params[at..at + 16].copy_from_slice(&bytes),
            _ => {}
        }
        if flags & SKIP_NEIGHBOR == 0 {
            let Some(dmac) = hop.dmac else { return value(fib::NO_NEIGHBOR) };
            params[52..58].copy_from_slice(&hop.smac);
            params[58..64].copy_from_slice(&dmac);
        }
        params[48..52].fill(0);
        if packet_len != 0 {
            params[6..8].copy_from_slice(&(hop.mtu as u16).to_le_bytes());
        }
        value(fib::SUCCESS)
    }

    fn check_mtu(&mut self, context: u64, ifindex: u64, len: u64, difference: u64, flags: u64) -> Answer {
        const FRAG_NEEDED: u64 = 1;
        self.context(Helper::CheckMtu, context)?;
        let asked = u32::from_le_bytes(self.mem.load(len)?);
        if flags != 0 {
            return error(errno::INVALID);
        }
        let ifindex = if ifindex as u32 == 0 { self.meta.ifindex } else { ifindex as u32 };
        let Some(mtu) = self.network.mtu(ifindex) else { return error(errno::NO_DEVICE) };
        let header = crate::buff::FRAME_BYTES_MIN as i64;
        let frame = if asked == 0 { self.mem.buff.len_bytes() as i64 } else { i64::from(asked) + header };
        let frame = frame + i64::from(difference as u32 as i32);
        self.mem.store(len, mtu.to_le_bytes())?;
        value(if frame > i64::from(mtu) + header { FRAG_NEEDED } else { 0 })
    }

    fn spin(&mut self, helper: Helper, address: u64) -> Answer {
        self.mem.bytes_mut(address, 4)?;
        match (helper, self.lock) {
            (Helper::SpinLock, None) => self.lock = Some(address),
            (Helper::SpinUnlock, Some(held)) if held == address => self.lock = None,
            _ => return Err(FaultKind::SpinLock),
        }
        value(0)
    }

    fn ring_output(&mut self, map: u64, data: u64, len: u64) -> Answer {
        let map = self.map_of(Helper::RingOutput, map, &[MapType::RingBuf])?;
        self.record(map, None, (data, len), 0)
    }

    fn ring_reserve(&mut self, map: u64, len: u64) -> Answer {
        let map = self.map_of(Helper::RingReserve, map, &[MapType::RingBuf])?;
        let Ok(len) = u32::try_from(len) else { return value(0) };
        let payload = self.map_mut(map).ring().and_then(|ring| ring.reserve(len));
        self.reserved |= payload.is_some();
        value(payload.map_or(0, |payload| value_address(map, u64::from(payload))))
    }

    fn ring_commit(&mut self, helper: Helper, record: u64) -> Answer {
        let map = (record >> 32).wrapping_sub(value_address(0, 0) >> 32) as usize;
        let ring = self.mem.maps.get_mut(map).and_then(Map::ring);
        match ring.map(|ring| ring.commit(record as u32, helper == Helper::RingDiscard)) {
            Some(true) => value(0),
            _ => Err(FaultKind::Argument { helper, number: 1, value: record }),
        }
    }

    fn perf_event_output(&mut self, [context, map, flags, data, len]: [u64; 5]) -> Answer {
        const INDEX: u64 = 0xffff_ffff;
        const PACKET_LEN: u64 = 0xf_ffff;
        let helper = Helper::PerfEventOutput;
        self.context(helper, context)?;
        let map = self.map_of(helper, map, &[MapType::PerfEventArray])?;
        if flags & !(PACKET_LEN << 32 | INDEX) != 0 {
            return error(errno::INVALID);
        }
        let cpu = if flags & INDEX == INDEX { self.meta.cpu } else { flags as u32 };
        if cpu >= self.mem.maps[map as usize].spec().max_entries {
            return error(errno::TOO_BIG);
        }
        let packet = (flags >> 32 & PACKET_LEN) as usize;
        if packet > self.mem.buff.len_bytes() {
            return error(errno::FAULT);
        }
        self.record(map, Some(cpu), (data, len), packet)
    }

    /// A record in a ring: a CPU, bytes of the program's, the packet's beginning.
    fn record(&mut self, map: u32, cpu: Option<u32>, (data, len): (u64, u64), packet: usize) -> Answer {
        self.mem.bytes(data, usize::try_from(len).unwrap_or(usize::MAX))?;
        let prefix = if cpu.is_some() { 4 } else { 0 };
        let whole = u32::try_from(len as usize + packet + prefix).unwrap_or(u32::MAX);
        let full = if cpu.is_some() { errno::NO_SPACE } else { errno::AGAIN };
        let payload = self.map_mut(map).ring().and_then(|ring| ring.reserve(whole));
        let Some(payload) = payload else { return error(full) };
        let mut at = payload as usize;
        if let Some(cpu) = cpu {
            self.ring_bytes(map, at, &cpu.to_le_bytes());
            at += prefix;
        }
        // In pieces, since the program's bytes may be in a map too.
        let mut chunk = [0; 64];
        let mut done = 0;
        while done < len as usize {
            let part = (len as usize - done).min(chunk.len());
            chunk[..part].copy_from_slice(self.mem.bytes(data + done as u64, part)?);
            self.ring_bytes(map, at, &chunk[..part]);
            (at, done) = (at + part, done + part);
        }
        let Memory { buff, maps, .. } = &mut self.mem;
        if let Some(ring) = maps[map as usize].ring() {
            ring.data_mut()[at..at + packet].copy_from_slice(&buff.data()[..packet]);
            ring.commit(payload, false);
        }
        value(0)
    }

    fn ring_bytes(&mut self, map: u32, at: usize, bytes: &[u8]) {
        if let Some(ring) = self.map_mut(map).ring() {
            ring.data_mut()[at..at + bytes.len()].copy_from_slice(bytes);
        }
    }

    fn trace_printk(&mut self, format: u64, len: u64, args: &[u64]) -> Answer {
        let Self { mem, trace, .. } = self;
        let format = mem.bytes(format, len as u32 as usize)?;
        value(
            trace::print(trace, format, args, mem)
                .map_or_else(|()| (-errno::INVALID).cast_unsigned(), |len| len as u64),
        )
    }

    fn trace_vprintk(&mut self, format: u64, len: u64, data: u64, data_len: u64) -> Answer {
        const ARGS_MAX: usize = 12;
        let data_len = data_len as u32 as usize;
        if !data_len.is_multiple_of(8) || data_len > ARGS_MAX * 8 {
            return error(errno::INVALID);
        }
        let mut args = [0; ARGS_MAX];
        for (arg, word) in args.iter_mut().zip(self.mem.bytes(data, data_len)?.as_chunks().0) {
            *arg = u64::from_le_bytes(*word);
        }
        self.trace_printk(format, len, &args[..data_len / 8])
    }

    fn strncmp(&mut self, one: u64, len: u64, other: u64) -> Answer {
        let one = self.mem.bytes(one, len as u32 as usize)?;
        for (at, mine) in one.iter().enumerate() {
            let [theirs] = self.mem.load(other + at as u64)?;
            if *mine != theirs {
                // Linux's own strncmp, which x86 uses, answers no more than the sign.
                return value(if *mine < theirs { -1i64 } else { 1 }.cast_unsigned());
            }
            if theirs == 0 {
                break;
            }
        }
        value(0)
    }

    fn bpf_loop(&mut self, count: u64, callback: u64, context: u64, flags: u64) -> Answer {
        let function = self.callback(callback)?;
        // The count is an u32.
        let count = count & 0xffff_ffff;
        if flags != 0 {
            return error(errno::INVALID);
        }
        if count > LOOPS_MAX {
            return error(errno::TOO_BIG);
        }
        if count == 0 { value(0) } else { Ok(Flow::Loop { function, count, context }) }
    }

    fn for_each(&mut self, map: u64, callback: u64, context: u64, flags: u64) -> Answer {
        use MapType as T;
        let types = [T::Array, T::PerCpuArray, T::Hash, T::PerCpuHash, T::LruHash, T::LruPerCpuHash];
        let map = self.map_of(Helper::ForEachMapElem, map, &types)?;
        let function = self.callback(callback)?;
        if flags != 0 {
            return error(errno::INVALID);
        }
        Ok(Flow::Each { function, map, context })
    }
}

/// SplitMix64, as Vigna published it: one addition and a mix per number.
fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Addition in ones' complement.
fn ones_add(a: u32, b: u32) -> u32 {
    let (sum, carry) = a.overflowing_add(b);
    sum + u32::from(carry)
}

/// The ones' complement sum of a piece of memory whose length is a multiple of 4.
fn ones_sum(bytes: &[u8], seed: u32) -> u32 {
    bytes.as_chunks().0.iter().fold(seed, |sum, word| ones_add(sum, u32::from_le_bytes(*word)))
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.first_chunk().copied().unwrap_or([0; N])
}

fn read_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(&bytes[at..]))
}
