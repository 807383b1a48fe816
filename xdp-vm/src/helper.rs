//! The kernel's helper functions by number and name, and which of them this VM has.
//!
//! Numbers are Linux's ABI (`include/uapi/linux/bpf.h`, `enum bpf_func_id`). What the helpers do is in [`crate::call`].

/// Names by number, from 1, without the prefix `bpf_`.
const NAMES: [&str; 211] = [
    "map_lookup_elem",
    "map_update_elem",
    "map_delete_elem",
    "probe_read",
    "ktime_get_ns",
    "trace_printk",
    "get_prandom_u32",
    "get_smp_processor_id",
    "skb_store_bytes",
    "l3_csum_replace",
    "l4_csum_replace",
    "tail_call",
    "clone_redirect",
    "get_current_pid_tgid",
    "get_current_uid_gid",
    "get_current_comm",
    "get_cgroup_classid",
    "skb_vlan_push",
    "skb_vlan_pop",
    "skb_get_tunnel_key",
    "skb_set_tunnel_key",
    "perf_event_read",
    "redirect",
    "get_route_realm",
    "perf_event_output",
    "skb_load_bytes",
    "get_stackid",
    "csum_diff",
    "skb_get_tunnel_opt",
    "skb_set_tunnel_opt",
    "skb_change_proto",
    "skb_change_type",
    "skb_under_cgroup",
    "get_hash_recalc",
    "get_current_task",
    "probe_write_user",
    "current_task_under_cgroup",
    "skb_change_tail",
    "skb_pull_data",
    "csum_update",
    "set_hash_invalid",
    "get_numa_node_id",
    "skb_change_head",
    "xdp_adjust_head",
    "probe_read_str",
    "get_socket_cookie",
    "get_socket_uid",
    "set_hash",
    "setsockopt",
    "skb_adjust_room",
    "redirect_map",
    "sk_redirect_map",
    "sock_map_update",
    "xdp_adjust_meta",
    "perf_event_read_value",
    "perf_prog_read_value",
    "getsockopt",
    "override_return",
    "sock_ops_cb_flags_set",
    "msg_redirect_map",
    "msg_apply_bytes",
    "msg_cork_bytes",
    "msg_pull_data",
    "bind",
    "xdp_adjust_tail",
    "skb_get_xfrm_state",
    "get_stack",
    "skb_load_bytes_relative",
    "fib_lookup",
    "sock_hash_update",
    "msg_redirect_hash",
    "sk_redirect_hash",
    "lwt_push_encap",
    "lwt_seg6_store_bytes",
    "lwt_seg6_adjust_srh",
    "lwt_seg6_action",
    "rc_repeat",
    "rc_keydown",
    "skb_cgroup_id",
    "get_current_cgroup_id",
    "get_local_storage",
    "sk_select_reuseport",
    "skb_ancestor_cgroup_id",
    "sk_lookup_tcp",
    "sk_lookup_udp",
    "sk_release",
    "map_push_elem",
    "map_pop_elem",
    "map_peek_elem",
    "msg_push_data",
    "msg_pop_data",
    "rc_pointer_rel",
    "spin_lock",
    "spin_unlock",
    "sk_fullsock",
    "tcp_sock",
    "skb_ecn_set_ce",
    "get_listener_sock",
    "skc_lookup_tcp",
    "tcp_check_syncookie",
    "sysctl_get_name",
    "sysctl_get_current_value",
    "sysctl_get_new_value",
    "sysctl_set_new_value",
    "strtol",
    "strtoul",
    "sk_storage_get",
    "sk_storage_delete",
    "send_signal",
    "tcp_gen_syncookie",
    "skb_output",
    "probe_read_user",
    "probe_read_kernel",
    "probe_read_user_str",
    "probe_read_kernel_str",
    "tcp_send_ack",
    "send_signal_thread",
    "jiffies64",
    "read_branch_records",
    "get_ns_current_pid_tgid",
    "xdp_output",
    "get_netns_cookie",
    "get_current_ancestor_cgroup_id",
    "sk_assign",
    "ktime_get_boot_ns",
    "seq_printf",
    "seq_write",
    "sk_cgroup_id",
    "sk_ancestor_cgroup_id",
    "ringbuf_output",
    "ringbuf_reserve",
    "ringbuf_submit",
    "ringbuf_discard",
    "ringbuf_query",
    "csum_level",
    "skc_to_tcp6_sock",
    "skc_to_tcp_sock",
    "skc_to_tcp_timewait_sock",
    "skc_to_tcp_request_sock",
    "skc_to_udp6_sock",
    "get_task_stack",
    "load_hdr_opt",
    "store_hdr_opt",
    "reserve_hdr_opt",
    "inode_storage_get",
    "inode_storage_delete",
    "d_path",
    "copy_from_user",
    "snprintf_btf",
    "seq_printf_btf",
    "skb_cgroup_classid",
    "redirect_neigh",
    "per_cpu_ptr",
    "this_cpu_ptr",
    "redirect_peer",
    "task_storage_get",
    "task_storage_delete",
    "get_current_task_btf",
    "bprm_opts_set",
    "ktime_get_coarse_ns",
    "ima_inode_hash",
    "sock_from_file",
    "check_mtu",
    "for_each_map_elem",
    "snprintf",
    "sys_bpf",
    "btf_find_by_name_kind",
    "sys_close",
    "timer_init",
    "timer_set_callback",
    "timer_start",
    "timer_cancel",
    "get_func_ip",
    "get_attach_cookie",
    "task_pt_regs",
    "get_branch_snapshot",
    "trace_vprintk",
    "skc_to_unix_sock",
    "kallsyms_lookup_name",
    "find_vma",
    "loop",
    "strncmp",
    "get_func_arg",
    "get_func_ret",
    "get_func_arg_cnt",
    "get_retval",
    "set_retval",
    "xdp_get_buff_len",
    "xdp_load_bytes",
    "xdp_store_bytes",
    "copy_from_user_task",
    "skb_set_tstamp",
    "ima_file_hash",
    "kptr_xchg",
    "map_lookup_percpu_elem",
    "skc_to_mptcp_sock",
    "dynptr_from_mem",
    "ringbuf_reserve_dynptr",
    "ringbuf_submit_dynptr",
    "ringbuf_discard_dynptr",
    "dynptr_read",
    "dynptr_write",
    "dynptr_data",
    "tcp_raw_gen_syncookie_ipv4",
    "tcp_raw_gen_syncookie_ipv6",
    "tcp_raw_check_syncookie_ipv4",
    "tcp_raw_check_syncookie_ipv6",
    "ktime_get_tai_ns",
    "user_ringbuf_drain",
    "cgrp_storage_get",
    "cgrp_storage_delete",
];

/// The name of helper `id` in C.
pub fn helper_name(id: i32) -> Option<&'static str> {
    NAMES.get(usize::try_from(id).ok()?.checked_sub(1)?).copied()
}

macro_rules! helpers {
    ($($name:ident = $id:literal, $license:ident;)*) => {
        /// A helper that this VM has.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        #[allow(missing_docs)]
        #[repr(u8)]
        pub enum Helper {
            $($name = $id,)*
        }

        impl Helper {
            /// All of them, by number.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The helper of that number, if it is here.
            pub const fn from_id(id: i32) -> Option<Self> {
                match id {
                    $($id => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// The kernel lets only programs under a GPL-compatible license call it.
            pub const fn gpl_only(self) -> bool {
                match self {
                    $(Self::$name => helpers!(@ $license),)*
                }
            }
        }
    };
    (@ gpl) => { true };
    (@ any) => { false };
}

helpers! {
    MapLookup = 1, any;
    MapUpdate = 2, any;
    MapDelete = 3, any;
    KtimeGetNs = 5, any;
    TracePrintk = 6, gpl;
    GetPrandom = 7, any;
    GetCpu = 8, any;
    TailCall = 12, any;
    Redirect = 23, any;
    PerfEventOutput = 25, gpl;
    CsumDiff = 28, any;
    GetNumaNode = 42, any;
    AdjustHead = 44, any;
    RedirectMap = 51, any;
    AdjustMeta = 54, any;
    AdjustTail = 65, any;
    FibLookup = 69, gpl;
    MapPush = 87, any;
    MapPop = 88, any;
    MapPeek = 89, any;
    SpinLock = 93, any;
    SpinUnlock = 94, any;
    Jiffies64 = 118, any;
    KtimeGetBootNs = 125, any;
    RingOutput = 130, any;
    RingReserve = 131, any;
    RingSubmit = 132, any;
    RingDiscard = 133, any;
    RingQuery = 134, any;
    KtimeGetCoarseNs = 160, any;
    CheckMtu = 163, any;
    ForEachMapElem = 164, any;
    TraceVprintk = 177, gpl;
    Loop = 181, any;
    Strncmp = 182, any;
    GetBuffLen = 188, any;
    LoadBytes = 189, any;
    StoreBytes = 190, any;
    MapLookupPercpu = 195, any;
    KtimeGetTaiNs = 208, any;
}

impl Helper {
    /// Its number.
    pub const fn id(self) -> i32 {
        self as i32
    }

    /// Its name in C, without the prefix `bpf_`.
    pub fn name(self) -> &'static str {
        helper_name(self.id()).unwrap_or("?")
    }
}

/// Licenses that the kernel counts as GPL-compatible (`include/linux/license.h`).
pub(crate) fn gpl_compatible(license: &str) -> bool {
    matches!(license, "GPL" | "GPL v2" | "GPL and additional rights" | "Dual BSD/GPL" | "Dual MIT/GPL" | "Dual MPL/GPL")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_agree() {
        // Numbers as xdp programs' disassembly shows them.
        for (id, name) in [(1, "map_lookup_elem"), (44, "xdp_adjust_head"), (51, "redirect_map"), (181, "loop")] {
            assert_eq!(Helper::from_id(id).map(Helper::name), Some(name));
        }
        assert_eq!(helper_name(99), Some("skc_lookup_tcp"));
        assert_eq!((helper_name(0), helper_name(-1), helper_name(212)), (None, None, None));
        assert_eq!(helper_name(211), Some("cgrp_storage_delete"));
        assert!(Helper::ALL.iter().all(|helper| Helper::from_id(helper.id()) == Some(*helper)));
    }
}
