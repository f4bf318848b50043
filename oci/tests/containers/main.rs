//! Containers of a real runc, each with a kernel object, from home to abroad and back on this machine: a program in it
//! says at each step that the object is what it was.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod config;
mod deaths;
mod lazy;
mod node;
mod paused;
mod podman;
mod round;
mod supply;

macro_rules! objects {
    ($($object:ident)*) => {
        $(#[test]
        fn $object() {
            round::cross(stringify!($object));
        })*
    };
}

objects! {
    bulk
    clocks
    deleted
    descriptors
    events
    exec
    faults
    filters
    floats
    forks
    futexes
    identity
    inotify
    limits
    locks
    memory
    mounts
    namespaces
    nested
    netlink
    passed
    pidfds
    pipes
    processes
    seccomp
    shared
    signals
    sysvipc
    tcp
    terminal
    threads
    timers
    unix
    waits
}

#[test]
fn programs_start_abroad() {
    round::begin_abroad("events");
}

#[test]
fn programs_that_start_abroad_go_home_under_their_profile() {
    round::begin_abroad("seccomp");
}

/// Another OCI runtime below ours.
#[test]
fn crun() {
    round::cross_by_crun("processes");
}
