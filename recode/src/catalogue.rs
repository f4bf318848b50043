//! The image types of CRIU 4.2: how each file is named, how it starts, what it holds, and what happens to it
//! when a checkpoint is recoded. One row per type (CRIU's `image-desc.c` and `magic.h`).

use crate::proto;
use crate::trailer::Trailed;
use protobuf::{MessageDyn, MessageFull};

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

/// A type of message.
#[derive(Clone, Copy)]
pub struct MessageType {
    /// Its name.
    pub name: &'static str,
    pub(crate) parse: Parse,
}

/// Makes a message of its bytes, and says how many others follow it, outside of it. There is one for each type, since reflection
/// would first build tables of all that the type has.
pub(crate) type Parse = fn(&[u8]) -> protobuf::Result<(Box<dyn MessageDyn>, u64)>;

/// Messages that nothing follows.
pub(crate) const fn plain<M: MessageFull>() -> MessageType {
    MessageType { name: M::NAME, parse: |bytes| Ok((Box::new(M::parse_from_bytes(bytes)?), 0)) }
}

/// Messages that bytes follow.
pub(crate) const fn followed<M: MessageFull + Trailed>() -> MessageType {
    let parse: Parse = |bytes| {
        let message = M::parse_from_bytes(bytes)?;
        let trailer = message.trailer();
        Ok((Box::new(message), trailer))
    };
    MessageType { name: M::NAME, parse }
}

/// What follows the magic number. Every message is preceded by its length (u32).
#[derive(Clone, Copy)]
pub enum Layout {
    /// No magic and no messages: another tool's bytes, or raw pages.
    Raw,
    /// Messages of one type.
    Messages(MessageType),
    /// One message of the first type, then messages of the second.
    Headed(MessageType, MessageType),
    /// Messages of one type, each followed by bytes.
    Trailed(MessageType),
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

const fn messages(name: &'static str, magic: u32, of: MessageType, rule: Rule) -> ImageType {
    ImageType { name, prefix: Prefix::Common, magic, layout: Layout::Messages(of), rule }
}

const fn trailed(name: &'static str, magic: u32, of: MessageType) -> ImageType {
    ImageType { name, prefix: Prefix::Common, magic, layout: Layout::Trailed(of), rule: Rule::Copy }
}

const fn raw(name: &'static str, rule: Rule) -> ImageType {
    ImageType { name, prefix: Prefix::None, magic: 0, layout: Layout::Raw, rule }
}

const fn service(name: &'static str, magic: u32, of: MessageType) -> ImageType {
    ImageType { name, prefix: Prefix::Service, magic, layout: Layout::Messages(of), rule: Rule::Leave }
}

const PAGEMAP: Layout =
    Layout::Headed(plain::<proto::pagemap::Pagemap_head>(), plain::<proto::pagemap::Pagemap_entry>());
const PROCESS: Rule = Rule::Remap(Part::Process);
const OUTDATED: Rule =
    Rule::Refuse("written by CRIU before 4.0, which kept this elsewhere; dump with CRIU 4.2");

/// The catalogue.
#[rustfmt::skip]
pub static IMAGE_TYPES: &[ImageType] = &[
    // The set, its processes and their threads.
    ImageType { name: "inventory.img", prefix: Prefix::None, magic: 0x5831_3116,
                layout: Layout::Messages(plain::<proto::inventory::Inventory_entry>()), rule: Rule::Copy },
    messages("pstree.img",        0x5027_3030, plain::<proto::pstree::Pstree_entry>(), Rule::Copy),
    messages("core-*.img",        0x5505_3847, plain::<proto::criu_core::Core_entry>(), PROCESS),
    messages("ids-*.img",         0x5443_2030, plain::<proto::criu_core::Task_kobj_ids_entry>(), Rule::Copy),
    messages("fs-*.img",          0x5140_3912, plain::<proto::fs::Fs_entry>(), Rule::Copy),
    messages("creds-*.img",       0x5402_3547, plain::<proto::creds::Creds_entry>(), OUTDATED),
    messages("sigacts-*.img",     0x5534_4201, plain::<proto::criu_sa::Sa_entry>(), OUTDATED),
    messages("itimers-*.img",     0x5746_4056, plain::<proto::timer::Itimer_entry>(), OUTDATED),
    messages("posix-timers-*.img",0x5260_3957, plain::<proto::timer::Posix_timer_entry>(), OUTDATED),
    messages("rlimit-*.img",      0x5711_3925, plain::<proto::rlimit::Rlimit_entry>(), OUTDATED),
    messages("signal-s-*.img",    0x5925_5647, plain::<proto::siginfo::Siginfo_entry>(), OUTDATED),
    messages("signal-p-*.img",    0x5925_5647, plain::<proto::siginfo::Siginfo_entry>(), OUTDATED),
    messages("seccomp.img",       0x6441_3049, plain::<proto::seccomp::Seccomp_entry>(), Rule::Remap(Part::Seccomp)),
    messages("cpuinfo.img",       0x6140_4013, plain::<proto::cpuinfo::Cpuinfo_entry>(), Rule::Remap(Part::CpuInfo)),
    messages("cgroup.img",        0x5938_3330, plain::<proto::cgroup::Cgroup_entry>(), Rule::Copy),
    messages("apparmor.img",      0x5942_3047, plain::<proto::apparmor::Apparmor_entry>(), Rule::Copy),
    // Address spaces.
    messages("mm-*.img",          0x5749_2820, plain::<proto::mm::Mm_entry>(), PROCESS),
    messages("vmas-*.img",        0x5412_3737, plain::<proto::vma::Vma_entry>(), OUTDATED),
    ImageType { name: "pagemap-*.img", prefix: Prefix::Common, magic: 0x5608_4025, layout: PAGEMAP, rule: PROCESS },
    ImageType { name: "pagemap-shmem-*.img", prefix: Prefix::Common, magic: 0x5608_4025, layout: PAGEMAP, rule: Rule::Copy },
    raw("pages-*.img",            Rule::Remap(Part::Pages)),
    raw("pages-shmem-*.img",      OUTDATED),
    messages("memfd.img",         0x4845_3499, plain::<proto::memfd::Memfd_inode_entry>(), Rule::Copy),
    // Open files.
    messages("files.img",         0x5630_3138, plain::<proto::fdinfo::File_entry>(), Rule::Remap(Part::Files)),
    messages("fdinfo-*.img",      0x5621_3732, plain::<proto::fdinfo::Fdinfo_entry>(), Rule::Copy),
    messages("reg-files.img",     0x5036_3636, plain::<proto::regfile::Reg_file_entry>(), OUTDATED),
    messages("ext-files.img",     0x5925_5641, plain::<proto::ext_file::Ext_file_entry>(), OUTDATED),
    messages("ns-files.img",      0x6139_4011, plain::<proto::ns::Ns_file_entry>(), OUTDATED),
    messages("eventfd.img",       0x4452_3722, plain::<proto::eventfd::Eventfd_file_entry>(), OUTDATED),
    messages("eventpoll.img",     0x4502_3858, plain::<proto::eventpoll::Eventpoll_file_entry>(), OUTDATED),
    messages("eventpoll-tfd.img", 0x4443_3746, plain::<proto::eventpoll::Eventpoll_tfd_entry>(), OUTDATED),
    messages("signalfd.img",      0x5732_3820, plain::<proto::signalfd::Signalfd_entry>(), OUTDATED),
    messages("timerfd.img",       0x5049_3712, plain::<proto::timerfd::Timerfd_entry>(), OUTDATED),
    messages("inotify.img",       0x4842_4431, plain::<proto::fsnotify::Inotify_file_entry>(), OUTDATED),
    messages("inotify-wd.img",    0x5456_2009, plain::<proto::fsnotify::Inotify_wd_entry>(), OUTDATED),
    messages("fanotify.img",      0x5509_6122, plain::<proto::fsnotify::Fanotify_file_entry>(), OUTDATED),
    messages("fanotify-mark.img", 0x5650_6035, plain::<proto::fsnotify::Fanotify_mark_entry>(), OUTDATED),
    messages("pipes.img",         0x5651_3555, plain::<proto::pipe::Pipe_entry>(), OUTDATED),
    messages("fifo.img",          0x5836_4939, plain::<proto::fifo::Fifo_entry>(), OUTDATED),
    messages("unixsk.img",        0x5437_3943, plain::<proto::sk_unix::Unix_sk_entry>(), OUTDATED),
    messages("inetsk.img",        0x5644_3851, plain::<proto::sk_inet::Inet_sk_entry>(), OUTDATED),
    messages("packetsk.img",      0x6045_4618, plain::<proto::packet_sock::Packet_sock_entry>(), OUTDATED),
    messages("netlinksk.img",     0x5800_5614, plain::<proto::sk_netlink::Netlink_sk_entry>(), OUTDATED),
    messages("tty.img",           0x5943_3025, plain::<proto::tty::Tty_file_entry>(), OUTDATED),
    messages("tunfile.img",       0x5714_3751, plain::<proto::tun::Tunfile_entry>(), OUTDATED),
    messages("pidfd.img",         0x5443_5556, plain::<proto::pidfd::Pidfd_entry>(), OUTDATED),
    messages("bpfmap-file.img",   0x5750_6142, plain::<proto::bpfmap_file::Bpfmap_file_entry>(), OUTDATED),
    trailed("bpfmap-data.img",    0x6432_4033, followed::<proto::bpfmap_data::Bpfmap_data_entry>()),
    messages("tty-info.img",      0x5945_3036, plain::<proto::tty::Tty_info_entry>(), Rule::Copy),
    messages("tty-data.img",      0x5941_3026, plain::<proto::tty::Tty_data_entry>(), Rule::Copy),
    messages("filelocks.img",     0x5432_3616, plain::<proto::file_lock::File_lock_entry>(), Rule::Copy),
    messages("remap-fpath.img",   0x5913_3954, plain::<proto::remap_file_path::Remap_file_path_entry>(), Rule::Copy),
    ImageType { name: "ghost-file-*.img", prefix: Prefix::Common, magic: 0x5258_3605, layout: Layout::GhostFile, rule: Rule::Copy },
    // What is under way in pipes and sockets.
    trailed("pipes-data.img",     0x5645_3709, followed::<proto::pipe_data::Pipe_data_entry>()),
    trailed("fifo-data.img",      0x5933_3054, followed::<proto::pipe_data::Pipe_data_entry>()),
    trailed("sk-queues.img",      0x5626_4026, followed::<proto::sk_packet::Sk_packet_entry>()),
    trailed("tcp-stream-*.img",   0x5146_5506, followed::<proto::tcp_stream::Tcp_stream_entry>()),
    // Namespaces.
    messages("utsns-*.img",       0x5447_3203, plain::<proto::utsns::Utsns_entry>(), Rule::Copy),
    messages("userns-*.img",      0x5547_4906, plain::<proto::userns::Userns_entry>(), Rule::Copy),
    messages("timens-*.img",      0x4311_4433, plain::<proto::timens::Timens_entry>(), Rule::Copy),
    messages("pidns-*.img",       0x6115_7326, plain::<proto::pidns::Pidns_entry>(), Rule::Copy),
    messages("ipcns-var-*.img",   0x5311_5007, plain::<proto::ipc_var::Ipc_var_entry>(), Rule::Copy),
    trailed("ipcns-shm-*.img",    0x4628_3044, followed::<proto::ipc_shm::Ipc_shm_entry>()),
    trailed("ipcns-sem-*.img",    0x5957_3019, followed::<proto::ipc_sem::Ipc_sem_entry>()),
    ImageType { name: "ipcns-msg-*.img", prefix: Prefix::Common, magic: 0x5545_3737, layout: Layout::MessageQueues, rule: Rule::Copy },
    messages("mountpoints-*.img", 0x5556_3928, plain::<proto::mnt::Mnt_entry>(), Rule::Copy),
    messages("binfmt-misc.img",   0x6734_3323, plain::<proto::binfmt_misc::Binfmt_misc_entry>(), Rule::Copy),
    messages("binfmt-misc-*.img", 0x6734_3323, plain::<proto::binfmt_misc::Binfmt_misc_entry>(), Rule::Copy),
    messages("autofs-*.img",      0x4935_3943, plain::<proto::autofs::Autofs_entry>(), Rule::Copy),
    raw("tmpfs-*.tar.gz.img",     Rule::Copy),
    raw("tmpfs-dev-*.tar.gz.img", Rule::Copy),
    messages("netns-*.img",       0x5593_3752, plain::<proto::netdev::Netns_entry>(), Rule::Copy),
    messages("netdev-*.img",      0x5737_3951, plain::<proto::netdev::Net_device_entry>(), Rule::Copy),
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
    service("stats-dump",         0x5709_3306, plain::<proto::stats::Stats_entry>()),
    service("stats-restore",      0x5709_3306, plain::<proto::stats::Stats_entry>()),
    service("irmap-cache.img",    0x5700_4059, plain::<proto::fh::Irmap_cache_entry>()),
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
