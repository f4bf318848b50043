//! Passing bytes between two connections.

use rustix::net::{Shutdown, shutdown};
use std::fs::File;
use std::io;
use std::thread;

/// What it means that a side says no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// What the other side has to say still comes through.
    OfOneWay,
    /// It is gone, and the other side is to know.
    OfBoth,
}

/// Pass bytes between two stream sockets, both ways, until that has ended.
pub fn relay(one: &File, other: &File, end: End) {
    thread::scope(|scope| {
        scope.spawn(|| pass(one, other, end));
        pass(other, one, end);
    });
}

fn pass(from: &File, to: &File, end: End) {
    let ended = io::copy(&mut &*from, &mut &*to);
    // A socket that is closed already needs no shutdown.
    let _ = match (ended, end) {
        (Ok(_), End::OfOneWay) => shutdown(to, Shutdown::Write),
        _ => shutdown(from, Shutdown::Both).and(shutdown(to, Shutdown::Both)),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    /// What a client gets that says `question` and no more, from a server that answers when it has heard that.
    fn answer(question: &str, end: End) -> String {
        let [(mut client, near), (far, mut server)] = [(); 2].map(|()| UnixStream::pair().unwrap());
        let [near, far] = [near, far].map(|socket| File::from(OwnedFd::from(socket)));
        let relaying = thread::spawn(move || relay(&near, &far, end));
        client.write_all(question.as_bytes()).unwrap();
        client.shutdown(net::Shutdown::Write).unwrap();
        let mut heard = String::new();
        server.read_to_string(&mut heard).unwrap();
        // If both ways have ended, nobody hears it.
        let _ = server.write_all(format!("{heard}!").as_bytes());
        drop(server);
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        relaying.join().unwrap();
        answer
    }

    #[test]
    fn the_end_is_of_one_way_or_of_both() {
        assert_eq!(answer("hello", End::OfOneWay), "hello!");
        assert_eq!(answer("hello", End::OfBoth), "");
    }
}
