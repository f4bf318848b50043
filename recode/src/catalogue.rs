//! The image types of CRIU 4.2: how each file is named, how it starts, what it holds, and what happens to it
//! when a checkpoint is recoded. One row per type (CRIU's `image-desc.c` and `magic.h`).

use crate::proto;
use protobuf::MessageFull;
use protobuf::reflect::MessageDescriptor;

/// What precedes an image's own magic number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Prefix {
    /// Nothing: the inventory, whose magic is the version of all the others.
    None,
    /// `IMG_COMMON_MAGIC`.
    Common,
    /// `IMG_SERVICE_MAGIC`: a report, which a restore does not read.
    Service,
}

impl Prefix {
    /// The prefix's magic number.
    pub const fn magic(self) -> Option<u32> {
        match self {
            Prefix::None => None,
            Prefix::Common => Some(0x5456_4319),
            Prefix::Service => Some(0x5510_5940),
        }
    }
}

/// How many bytes follow a message, outside of it: the sum of some of its integer fields times `unit`, rounded
/// up to a multiple of `align`.
#[derive(Clone, Copy, Debug)]
pub struct Trailer {
    /// Fields that add up to the number of units.
    pub fields: &'static [&'static str],
    /// Bytes per unit.
    pub unit: u64,
    /// Multiple to which the length is rounded up.
    pub align: u64,
    /// There is no trailer where this boolean field is true.
    pub unless: Option<&'static str>,
}

impl Trailer {
    const fn bytes(fields: &'static [&'static str]) -> Trailer {
        Trailer { fields, unit: 1, align: 1, unless: None }
    }
}

/// What follows the magic number. Every message is preceded by its length (u32).
#[derive(Clone, Copy)]
pub enum Layout {
    /// No magic and no messages: another tool's bytes, or raw pages.
    Raw,
    /// Messages of one type.
    Messages(fn() -> MessageDescriptor),
    /// One message of the first type, then messages of the second.
    Headed(fn() -> MessageDescriptor, fn() -> MessageDescriptor),
    /// Messages of one type, each followed by bytes.
    Trailed(fn() -> MessageDescriptor, Trailer),
    /// One ghost_file_entry; then, if it has `chunks`, ghost_chunk_entry messages each followed by its bytes,
    /// else bytes to the end of the file.
    GhostFile,
    /// ipc_msg_entry messages, each followed by `qnum` ipc_msg messages with their text, padded to 8 bytes.
    MessageQueues,
}

/// Who rewrites an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// The images of one process: its cores, its address space and the map of its pages.
    Process,
    /// The table of open files: flags, and the files that are mapped only on a host.
    Files,
    /// Page contents: left where they are, new pages beside them.
    Pages,
    /// CPU features of the dumping machine: only of use on the same kind of machine.
    CpuInfo,
    /// Seccomp filters: crosses only when empty, since filters test the machine and its system call numbers.
    Seccomp,
}

/// What recoding does with an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// The same on every machine: linked.
    Copy,
    /// Rewritten.
    Remap(Part),
    /// Left behind: it describes the dump or the restore, not the processes.
    Leave,
    /// Stops the recoding, for this reason.
    Refuse(&'static str),
}

/// A row of the catalogue.
pub struct ImageType {
    /// File name; `*` stands for a decimal or hexadecimal number.
    pub name: &'static str,
    /// What precedes the magic.
    pub prefix: Prefix,
    /// Magic number; 0 with [`Layout::Raw`].
    pub magic: u32,
    /// What follows it.
    pub layout: Layout,
    /// What recoding does with it.
    pub rule: Rule,
}

const fn messages(name: &'static str, magic: u32, of: fn() -> MessageDescriptor, rule: Rule) -> ImageType {
    ImageType { name, prefix: Prefix::Common, magic, layout: Layout::Messages(of), rule }
}

const fn trailed(name: &'static str, magic: u32, of: fn() -> MessageDescriptor, t: Trailer) -> ImageType {
    ImageType { name, prefix: Prefix::Common, magic, layout: Layout::Trailed(of, t), rule: Rule::Copy }
}

const fn raw(name: &'static str, rule: Rule) -> ImageType {
    ImageType { name, prefix: Prefix::None, magic: 0, layout: Layout::Raw, rule }
}

const fn service(name: &'static str, magic: u32, of: fn() -> MessageDescriptor) -> ImageType {
    ImageType { name, prefix: Prefix::Service, magic, layout: Layout::Messages(of), rule: Rule::Leave }
}

const PAGEMAP: Layout =
    Layout::Headed(proto::pagemap::Pagemap_head::descriptor, proto::pagemap::Pagemap_entry::descriptor);
const PROCESS: Rule = Rule::Remap(Part::Process);
const OUTDATED: Rule =
    Rule::Refuse("written by CRIU before 4.0, which kept this elsewhere; dump with CRIU 4.2");

/// The catalogue.
#[rustfmt::skip]
pub static IMAGE_TYPES: &[ImageType] = &[
    // The set, its processes and their threads.
    ImageType { name: "inventory.img", prefix: Prefix::None, magic: 0x5831_3116,
                layout: Layout::Messages(proto::inventory::Inventory_entry::descriptor), rule: Rule::Copy },
    messages("pstree.img",        0x5027_3030, proto::pstree::Pstree_entry::descriptor, Rule::Copy),
    messages("core-*.img",        0x5505_3847, proto::criu_core::Core_entry::descriptor, PROCESS),
    messages("ids-*.img",         0x5443_2030, proto::criu_core::Task_kobj_ids_entry::descriptor, Rule::Copy),
    messages("fs-*.img",          0x5140_3912, proto::fs::Fs_entry::descriptor, Rule::Copy),
    messages("creds-*.img",       0x5402_3547, proto::creds::Creds_entry::descriptor, OUTDATED),
    messages("sigacts-*.img",     0x5534_4201, proto::criu_sa::Sa_entry::descriptor, OUTDATED),
    messages("itimers-*.img",     0x5746_4056, proto::timer::Itimer_entry::descriptor, OUTDATED),
    messages("posix-timers-*.img",0x5260_3957, proto::timer::Posix_timer_entry::descriptor, OUTDATED),
    messages("rlimit-*.img",      0x5711_3925, proto::rlimit::Rlimit_entry::descriptor, OUTDATED),
    messages("signal-s-*.img",    0x5925_5647, proto::siginfo::Siginfo_entry::descriptor, OUTDATED),
    messages("signal-p-*.img",    0x5925_5647, proto::siginfo::Siginfo_entry::descriptor, OUTDATED),
    messages("seccomp.img",       0x6441_3049, proto::seccomp::Seccomp_entry::descriptor, Rule::Remap(Part::Seccomp)),
    messages("cpuinfo.img",       0x6140_4013, proto::cpuinfo::Cpuinfo_entry::descriptor, Rule::Remap(Part::CpuInfo)),
    messages("cgroup.img",        0x5938_3330, proto::cgroup::Cgroup_entry::descriptor, Rule::Copy),
    messages("apparmor.img",      0x5942_3047, proto::apparmor::Apparmor_entry::descriptor, Rule::Copy),
    // Address spaces.
    messages("mm-*.img",          0x5749_2820, proto::mm::Mm_entry::descriptor, PROCESS),
    messages("vmas-*.img",        0x5412_3737, proto::vma::Vma_entry::descriptor, OUTDATED),
    ImageType { name: "pagemap-*.img", prefix: Prefix::Common, magic: 0x5608_4025, layout: PAGEMAP, rule: PROCESS },
    ImageType { name: "pagemap-shmem-*.img", prefix: Prefix::Common, magic: 0x5608_4025, layout: PAGEMAP, rule: Rule::Copy },
    raw("pages-*.img",            Rule::Remap(Part::Pages)),
    raw("pages-shmem-*.img",      OUTDATED),
    messages("memfd.img",         0x4845_3499, proto::memfd::Memfd_inode_entry::descriptor, Rule::Copy),
    // Open files.
    messages("files.img",         0x5630_3138, proto::fdinfo::File_entry::descriptor, Rule::Remap(Part::Files)),
    messages("fdinfo-*.img",      0x5621_3732, proto::fdinfo::Fdinfo_entry::descriptor, Rule::Copy),
    messages("reg-files.img",     0x5036_3636, proto::regfile::Reg_file_entry::descriptor, OUTDATED),
    messages("ext-files.img",     0x5925_5641, proto::ext_file::Ext_file_entry::descriptor, OUTDATED),
    messages("ns-files.img",      0x6139_4011, proto::ns::Ns_file_entry::descriptor, OUTDATED),
    messages("eventfd.img",       0x4452_3722, proto::eventfd::Eventfd_file_entry::descriptor, OUTDATED),
    messages("eventpoll.img",     0x4502_3858, proto::eventpoll::Eventpoll_file_entry::descriptor, OUTDATED),
    messages("eventpoll-tfd.img", 0x4443_3746, proto::eventpoll::Eventpoll_tfd_entry::descriptor, OUTDATED),
    messages("signalfd.img",      0x5732_3820, proto::signalfd::Signalfd_entry::descriptor, OUTDATED),
    messages("timerfd.img",       0x5049_3712, proto::timerfd::Timerfd_entry::descriptor, OUTDATED),
    messages("inotify.img",       0x4842_4431, proto::fsnotify::Inotify_file_entry::descriptor, OUTDATED),
    messages("inotify-wd.img",    0x5456_2009, proto::fsnotify::Inotify_wd_entry::descriptor, OUTDATED),
    messages("fanotify.img",      0x5509_6122, proto::fsnotify::Fanotify_file_entry::descriptor, OUTDATED),
    messages("fanotify-mark.img", 0x5650_6035, proto::fsnotify::Fanotify_mark_entry::descriptor, OUTDATED),
    messages("pipes.img",         0x5651_3555, proto::pipe::Pipe_entry::descriptor, OUTDATED),
    messages("fifo.img",          0x5836_4939, proto::fifo::Fifo_entry::descriptor, OUTDATED),
    messages("unixsk.img",        0x5437_3943, proto::sk_unix::Unix_sk_entry::descriptor, OUTDATED),
    messages("inetsk.img",        0x5644_3851, proto::sk_inet::Inet_sk_entry::descriptor, OUTDATED),
    messages("packetsk.img",      0x6045_4618, proto::packet_sock::Packet_sock_entry::descriptor, OUTDATED),
    messages("netlinksk.img",     0x5800_5614, proto::sk_netlink::Netlink_sk_entry::descriptor, OUTDATED),
    messages("tty.img",           0x5943_3025, proto::tty::Tty_file_entry::descriptor, OUTDATED),
    messages("tunfile.img",       0x5714_3751, proto::tun::Tunfile_entry::descriptor, OUTDATED),
    messages("pidfd.img",         0x5443_5556, proto::pidfd::Pidfd_entry::descriptor, OUTDATED),
    messages("bpfmap-file.img",   0x5750_6142, proto::bpfmap_file::Bpfmap_file_entry::descriptor, OUTDATED),
    trailed("bpfmap-data.img",    0x6432_4033, proto::bpfmap_data::Bpfmap_data_entry::descriptor,
            Trailer::bytes(&["keys_bytes", "values_bytes"])),
    messages("tty-info.img",      0x5945_3036, proto::tty::Tty_info_entry::descriptor, Rule::Copy),
    messages("tty-data.img",      0x5941_3026, proto::tty::Tty_data_entry::descriptor, Rule::Copy),
    messages("filelocks.img",     0x5432_3616, proto::file_lock::File_lock_entry::descriptor, Rule::Copy),
    messages("remap-fpath.img",   0x5913_3954, proto::remap_file_path::Remap_file_path_entry::descriptor, Rule::Copy),
    ImageType { name: "ghost-file-*.img", prefix: Prefix::Common, magic: 0x5258_3605, layout: Layout::GhostFile, rule: Rule::Copy },
    // What is under way in pipes and sockets.
    trailed("pipes-data.img",     0x5645_3709, proto::pipe_data::Pipe_data_entry::descriptor, Trailer::bytes(&["bytes"])),
    trailed("fifo-data.img",      0x5933_3054, proto::pipe_data::Pipe_data_entry::descriptor, Trailer::bytes(&["bytes"])),
    trailed("sk-queues.img",      0x5626_4026, proto::sk_packet::Sk_packet_entry::descriptor, Trailer::bytes(&["length"])),
    trailed("tcp-stream-*.img",   0x5146_5506, proto::tcp_stream::Tcp_stream_entry::descriptor,
            Trailer::bytes(&["inq_len", "outq_len"])),
    // Namespaces.
    messages("utsns-*.img",       0x5447_3203, proto::utsns::Utsns_entry::descriptor, Rule::Copy),
    messages("userns-*.img",      0x5547_4906, proto::userns::Userns_entry::descriptor, Rule::Copy),
    messages("timens-*.img",      0x4311_4433, proto::timens::Timens_entry::descriptor, Rule::Copy),
    messages("pidns-*.img",       0x6115_7326, proto::pidns::Pidns_entry::descriptor, Rule::Copy),
    messages("ipcns-var-*.img",   0x5311_5007, proto::ipc_var::Ipc_var_entry::descriptor, Rule::Copy),
    trailed("ipcns-shm-*.img",    0x4628_3044, proto::ipc_shm::Ipc_shm_entry::descriptor,
            Trailer { fields: &["size"], unit: 1, align: 4, unless: Some("in_pagemaps") }),
    trailed("ipcns-sem-*.img",    0x5957_3019, proto::ipc_sem::Ipc_sem_entry::descriptor,
            Trailer { fields: &["nsems"], unit: 2, align: 8, unless: None }),
    ImageType { name: "ipcns-msg-*.img", prefix: Prefix::Common, magic: 0x5545_3737, layout: Layout::MessageQueues, rule: Rule::Copy },
    messages("mountpoints-*.img", 0x5556_3928, proto::mnt::Mnt_entry::descriptor, Rule::Copy),
    messages("binfmt-misc.img",   0x6734_3323, proto::binfmt_misc::Binfmt_misc_entry::descriptor, Rule::Copy),
    messages("binfmt-misc-*.img", 0x6734_3323, proto::binfmt_misc::Binfmt_misc_entry::descriptor, Rule::Copy),
    messages("autofs-*.img",      0x4935_3943, proto::autofs::Autofs_entry::descriptor, Rule::Copy),
    raw("tmpfs-*.tar.gz.img",     Rule::Copy),
    raw("tmpfs-dev-*.tar.gz.img", Rule::Copy),
    messages("netns-*.img",       0x5593_3752, proto::netdev::Netns_entry::descriptor, Rule::Copy),
    messages("netdev-*.img",      0x5737_3951, proto::netdev::Net_device_entry::descriptor, Rule::Copy),
    raw("ifaddr-*.img",           Rule::Copy),
    raw("route-*.img",            Rule::Copy),
    raw("route6-*.img",           Rule::Copy),
    raw("rule-*.img",             Rule::Copy),
    raw("iptables-*.img",         Rule::Copy),
    raw("ip6tables-*.img",        Rule::Copy),
    raw("nftables-*.img",         Rule::Copy),
    raw("netns-ct-*.img",         Rule::Copy),
    raw("netns-exp-*.img",        Rule::Copy),
    // About the dump or the restore; and what container engines put beside the images.
    service("stats-dump",         0x5709_3306, proto::stats::Stats_entry::descriptor),
    service("stats-restore",      0x5709_3306, proto::stats::Stats_entry::descriptor),
    service("irmap-cache.img",    0x5700_4059, proto::fh::Irmap_cache_entry::descriptor),
    raw("dump.log",               Rule::Leave),
    raw("restore.log",            Rule::Leave),
    raw("criu.log",               Rule::Leave),
    raw("descriptors.json",       Rule::Copy),
];

/// The type of the image file called `name`.
pub fn image_type(name: &str) -> Option<&'static ImageType> {
    IMAGE_TYPES.iter().find(|t| number_in(t.name, name).is_some())
}

/// Whether `name` fits `pattern`: the text that stands for its `*`, or "" where it has none.
fn number_in<'n>(pattern: &str, name: &'n str) -> Option<&'n str> {
    let Some((head, tail)) = pattern.split_once('*') else {
        return (pattern == name).then_some("");
    };
    let number = name.strip_prefix(head)?.strip_suffix(tail)?;
    let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_hexdigit());
    digits.then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_finds_its_own_row() {
        for row in IMAGE_TYPES {
            for number in ["1", "4096", "2f"] {
                let name = row.name.replace('*', number);
                assert_eq!(image_type(&name).unwrap().name, row.name, "{name}");
            }
        }
    }

    #[test]
    fn strange_names_find_none() {
        for name in ["core-.img", "core-x.img", "core-1.img~", "pages-1.img.gz", "extra.img", "img"] {
            assert!(image_type(name).is_none(), "{name}");
        }
    }
}
