//! What containers are made of (OCI runtime specification).

use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// An ordinary container as engines make them, but for seccomp; and what the one of this object has besides.
pub(crate) fn config(object: &str, folder: &Path) -> Value {
    let mut config = ordinary();
    special(object, &mut config, folder);
    config
}

fn ordinary() -> Value {
    let mount = |kind: &str, at: &str, options: &[&str]| mount(kind, kind, at, options);
    let capabilities = [
        "CAP_CHOWN",
        "CAP_DAC_OVERRIDE",
        "CAP_FOWNER",
        "CAP_KILL",
        "CAP_SETGID",
        "CAP_SETPCAP",
        "CAP_SETUID",
    ];
    let mut namespaces: Vec<Value> =
        ["pid", "ipc", "uts", "mount"].iter().map(|kind| json!({ "type": kind })).collect();
    // Of its own CRIU would be asked to take nothing along.
    namespaces.push(json!({ "type": "network", "path": "/run/netns/box" }));
    json!({
        "ociVersion": "1.0.2",
        "process": {
            "user": { "uid": 0, "gid": 0 },
            "args": ["/program"],
            "env": ["PATH=/bin"],
            "cwd": "/",
            "capabilities": { "bounding": capabilities, "effective": capabilities, "permitted": capabilities },
            "noNewPrivileges": true,
        },
        "root": { "path": "rootfs" },
        "hostname": "box",
        "mounts": [
            mount("proc", "/proc", &[]),
            mount("tmpfs", "/dev", &["nosuid", "strictatime", "mode=755", "size=65536k"]),
            mount("devpts", "/dev/pts", &["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"]),
            mount("tmpfs", "/dev/shm", &["nosuid", "noexec", "nodev", "mode=1777", "size=65536k"]),
            mount("mqueue", "/dev/mqueue", &["nosuid", "noexec", "nodev"]),
            mount("sysfs", "/sys", &["nosuid", "noexec", "nodev", "ro"]),
        ],
        "linux": {
            "namespaces": namespaces,
            "maskedPaths": ["/proc/kcore", "/proc/keys", "/sys/firmware"],
            "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"],
        },
    })
}

fn mount(kind: &str, source: &str, at: &str, options: &[&str]) -> Value {
    json!({ "destination": at, "type": kind, "source": source, "options": options })
}

/// What the container of one object has that others have not.
fn special(object: &str, config: &mut Value, folder: &Path) {
    match object {
        "limits" => config["linux"]["resources"] = json!({ "pids": { "limit": 20 } }),
        "mounts" => {
            for name in ["given", "kept"] {
                fs::create_dir_all(folder.join(name)).unwrap();
            }
            fs::write(folder.join("given/file"), "given").unwrap();
            config["mounts"].as_array_mut().unwrap().extend([
                mount("bind", "/tmp/given", "/mnt/given", &["rbind", "ro"]),
                mount("bind", "/tmp/kept", "/mnt/kept", &["rbind", "rw"]),
                mount("tmpfs", "tmpfs", "/mnt/volume", &["noexec", "size=1024k"]),
            ]);
        }
        "filters" | "seccomp" => config["linux"]["seccomp"] = profile(),
        _ => {}
    }
}

/// A seccomp profile with conditions of each kind.
fn profile() -> Value {
    let rule = |name: &str, action: &str, errno: i32, args: &[(u32, u64, u64, &str)]| {
        let args: Vec<Value> = args
            .iter()
            .map(|(index, value, second, op)| json!({ "index": index, "value": value, "valueTwo": second, "op": op }))
            .collect();
        match action {
            "SCMP_ACT_ALLOW" => json!({ "names": [name], "action": action, "args": args }),
            _ => json!({ "names": [name], "action": action, "errnoRet": errno, "args": args }),
        }
    };
    let (allow, refuse) = ("SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO");
    json!({
        "defaultAction": allow,
        "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64"],
        "syscalls": [
            rule("chroot", refuse, libc::EPERM, &[]),
            rule("mkdir", refuse, libc::ENOTCONN, &[]),
            rule("mkdirat", refuse, libc::ENOTCONN, &[]),
            rule("umask", refuse, libc::EPERM, &[(0, 6, 2, "SCMP_CMP_MASKED_EQ")]),
            rule("socket", refuse, libc::EXDEV, &[(0, 1, 0, "SCMP_CMP_NE"), (1, 5, 0, "SCMP_CMP_LE"), (2, 3, 0, "SCMP_CMP_LT")]),
            rule("lseek", refuse, libc::ENODEV, &[(1, 999, 0, "SCMP_CMP_GT")]),
            rule("lseek", refuse, libc::ENOTTY, &[(1, 0, 0, "SCMP_CMP_EQ"), (2, 2, 0, "SCMP_CMP_GE")]),
        ],
    })
}
