//! A way to a node on which a test holds back whatever comes after so many bytes.

use crate::lab::TestLab;
use serde_json::Value as Json;
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

/// Commands whose lab is in `state` reach the node through it.
pub(crate) struct Dam {
    /// The lab as they see it.
    pub(crate) state: PathBuf,
    level: Arc<Level>,
}

/// How many more bytes may pass to the node.
struct Level {
    left: Mutex<u64>,
    raised: Condvar,
}

impl Dam {
    /// Before `node` of `lab`.
    pub(crate) fn before(node: &str, lab: &TestLab, bytes: u64) -> Dam {
        let (listener, behind, state) = stand_before(node, lab);
        let level = Arc::new(Level { left: Mutex::new(bytes), raised: Condvar::new() });
        let of_thread = level.clone();
        // Ends with the test program.
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(node) = TcpStream::connect(("127.0.0.1", behind)) else { continue };
                of_thread.join(client, node);
            }
        });
        Dam { state, level }
    }

    /// Whether all that may pass has passed.
    pub(crate) fn is_full(&self) -> bool {
        *self.level.left.lock().unwrap() == 0
    }
}

/// What commands of `commands`, who are told of such a lab, send to `node`: a list of bytes for each connection.
pub(crate) fn passing(lab: &TestLab, node: &str, commands: impl FnOnce(&Path)) -> Vec<Vec<u8>> {
    let (listener, behind, state) = stand_before(node, lab);
    let recorded = Arc::new(Mutex::new(Vec::<Vec<u8>>::new()));
    let of_thread = recorded.clone();
    // Ends with the test program.
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let node = TcpStream::connect(("127.0.0.1", behind)).unwrap();
            let (client_again, node_again) = (client.try_clone().unwrap(), node.try_clone().unwrap());
            thread::spawn(move || pass(&node_again, &client_again, |wanted| wanted));
            let recorded = of_thread.clone();
            let index = recorded.lock().unwrap().len();
            recorded.lock().unwrap().push(Vec::new());
            thread::spawn(move || {
                record(&client, &node, |bytes| recorded.lock().unwrap()[index].extend(bytes))
            });
        }
    });
    commands(&state);
    let recorded = recorded.lock().unwrap();
    recorded.clone()
}

/// A lab as commands see it that reach `node` by way of a listener; the listener, the node's own port, and where that
/// lab is.
fn stand_before(node: &str, lab: &TestLab) -> (TcpListener, u16, PathBuf) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let state = lab.path("dam");
    fs::create_dir_all(&state).unwrap();
    let mut file: Json = serde_json::from_slice(&fs::read(lab.state().join("lab.json")).unwrap()).unwrap();
    let entry = &mut file["nodes"][node]["port"];
    let behind = u16::try_from(entry.as_u64().unwrap()).unwrap();
    *entry = port.into();
    fs::write(state.join("lab.json"), file.to_string()).unwrap();
    (listener, behind, state)
}

/// Pass bytes on, and have `seen` see them.
fn record(mut from: &TcpStream, mut to: &TcpStream, seen: impl Fn(&[u8])) {
    let mut buffer = [0; 16 << 10];
    while let Ok(got @ 1..) = from.read(&mut buffer) {
        seen(&buffer[..got]);
        if to.write_all(&buffer[..got]).is_err() {
            break;
        }
    }
    for side in [from, to] {
        // It may be gone already.
        let _ = side.shutdown(Shutdown::Both);
    }
}

impl Drop for Dam {
    fn drop(&mut self) {
        *self.level.left.lock().unwrap() = u64::MAX;
        self.level.raised.notify_all();
    }
}

impl Level {
    fn join(self: &Arc<Level>, client: TcpStream, node: TcpStream) {
        let (client_again, node_again) = (client.try_clone().unwrap(), node.try_clone().unwrap());
        let (level, level_again) = (self.clone(), self.clone());
        let over = Arc::new(AtomicBool::new(false));
        let over_again = over.clone();
        thread::spawn(move || pass(&client, &node, |wanted| level.take(wanted, &over)));
        // Once the node is gone nothing is held for it any more: both sockets are closed, as they would be without us.
        thread::spawn(move || {
            pass(&node_again, &client_again, |wanted| wanted);
            over_again.store(true, Ordering::SeqCst);
            drop(level_again.left.lock().unwrap());
            level_again.raised.notify_all();
        });
    }

    /// Wait until some of `wanted` bytes may pass, or it is over; how many.
    fn take(&self, wanted: u64, over: &AtomicBool) -> u64 {
        let left = self.left.lock().unwrap();
        let held = |left: &mut u64| *left == 0 && !over.load(Ordering::SeqCst);
        let mut left = self.raised.wait_while(left, held).unwrap();
        let taken = wanted.min(*left);
        *left -= taken;
        taken
    }
}

/// Pass bytes on, as many at a time as `allowed`, until one side is gone. Then so is the other.
fn pass(mut from: &TcpStream, mut to: &TcpStream, allowed: impl Fn(u64) -> u64) {
    let mut buffer = [0; 16 << 10];
    'open: while let Ok(got @ 1..) = from.read(&mut buffer) {
        let mut rest = &buffer[..got];
        while !rest.is_empty() {
            let (now, later) = rest.split_at(allowed(rest.len() as u64) as usize);
            rest = later;
            if now.is_empty() || to.write_all(now).is_err() {
                break 'open;
            }
        }
    }
    for side in [from, to] {
        // It may be gone already.
        let _ = side.shutdown(Shutdown::Both);
    }
}
