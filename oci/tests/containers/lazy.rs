//! Memory that stays where a container was until it is touched after the restore. That is CRIU's alone: images have to be changed
//! before they are restored abroad. (CRIU 4.2.1 does not get further than here below runc by itself, either: its page server fails
//! when it is first asked for memory, `splice: Bad file descriptor`.)

use crate::round::{Container, Steps};
use std::io::Read;
use std::process::Stdio;

const IMAGES: &str = "lazy";

#[test]
fn images_without_their_memory_are_refused_abroad() {
    let mut container = Container::new("memory");
    container.page_server = Some("127.0.0.1:27027");
    let at_home = Steps::follow(container.create(false), 0, "at home");

    let mut left = container.begin_checkpoint(IMAGES).stdout(Stdio::piped()).spawn().unwrap();
    // CRIU says by a byte that it waits to be asked for memory.
    left.stdout.take().unwrap().read_exact(&mut [0]).unwrap();

    let mut command = container.runtime(true);
    container.prepare_restore(IMAGES, &mut command);
    // The one that is left has its name for as long.
    let output = command.arg("elsewhere").output().unwrap();
    assert!(!output.status.success());
    let why = String::from_utf8_lossy(&output.stderr).into_owned() + &container.why_not_restored();
    assert!(why.contains("leaves memory with the process that was dumped"), "{why}");

    left.kill().unwrap();
    left.wait().unwrap();
    container.delete();
    at_home.end();
}
