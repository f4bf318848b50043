//! A container that its engine has paused, has taken a copy of its files, and then has it dumped: what it writes in between is in no copy.

use crate::node::succeed;
use crate::round::{Container, Steps};
use std::fs;

#[test]
fn a_paused_container_writes_nothing_more_before_its_dump() {
    let container = Container::new("writes");
    let abroad = Steps::follow(container.create(true), 0, "abroad");
    succeed(container.runtime(true).args(["pause", container.name()]), String::new);
    let counts = || fs::read(container.node().work().join("bundle/rootfs/tmp/counts")).unwrap();
    let before = counts();
    container.checkpoint("paused");
    assert_eq!(counts(), before, "it went on writing");
    let home = Steps::follow(container.restore("paused", false), abroad.end(), "at home");
    assert_ne!(counts(), before, "it does not go on writing");
    container.delete();
    home.end();
}
