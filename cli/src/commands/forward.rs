//! `tranship forward`: a unit's TCP port on this machine's loopback, wherever the unit moves.

use crate::error::{CliError, Result};
use crate::find;
use crate::output::Context;
use clap::Args;
use serde::Serialize;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};
use tranship_node::relay::{End, relay};
use tranship_node::{NodeError, UnitId, UnitState};

/// How long a new connection waits for a unit that is on its way.
const PATIENCE: Duration = Duration::from_secs(300);
/// Between two looks whether it has arrived.
const LOOK: Duration = Duration::from_millis(20);

/// Forward connections on this machine to a TCP port of a unit, wherever it is.
///
/// Connections that are open when the unit moves are closed; new ones wait until it has arrived.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  tranship forward shop 6379\n  tranship forward shop 8080:80\n\n\
Prints the address to connect to, and forwards until it is interrupted. With port 0 before the colon any free one is \
taken.")]
pub(crate) struct Forward {
    /// The unit.
    unit: UnitId,
    /// The port here, if it is another one, and the unit's.
    #[arg(value_name = "[HERE:]PORT")]
    ports: Ports,
}

/// Which port is forwarded to which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ports {
    here: u16,
    there: u16,
}

impl FromStr for Ports {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Ports, String> {
        let port = |text: &str| text.parse().map_err(|why| format!("{text:?} is no port: {why}"));
        let (here, there) = text.split_once(':').unwrap_or((text, text));
        Ok(Ports { here: port(here)?, there: port(there)? })
    }
}

/// What is printed.
#[derive(Serialize)]
struct Listening {
    address: SocketAddr,
}

impl Forward {
    pub(crate) fn run(self, context: &Context) -> Result<ExitCode> {
        find::unit(&context.nodes()?, &self.unit)?;
        let Ports { here, there } = self.ports;
        let failed = |why| CliError::io(format!("listening at port {here}"), why);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, here)).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        context.print(&Listening { address }, || address.to_string())?;
        thread::scope(|scope| {
            for client in listener.incoming() {
                let client = client.map_err(failed)?;
                scope.spawn(|| {
                    if let Err(error) = serve(context, &self.unit, there, client) {
                        context.say(&error.to_string());
                    }
                });
            }
            Ok(ExitCode::SUCCESS)
        })
    }
}

/// Forward one connection until it is closed.
fn serve(context: &Context, unit: &UnitId, port: u16, client: TcpStream) -> Result<()> {
    client.set_nodelay(true).map_err(|why| CliError::io("setting up the connection", why))?;
    let server = reach(context, unit, port)?;
    relay(&OwnedFd::from(client).into(), &server, End::OfOneWay);
    Ok(())
}

/// Connect to the unit where it is now, or will be soon.
fn reach(context: &Context, unit: &UnitId, port: u16) -> Result<File> {
    let nodes = context.nodes()?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let located = find::unit(&nodes, unit)?;
        let state = located.status.record.state;
        let why = match nodes.node(&located.node)?.connect(unit, port) {
            Ok(server) => return Ok(server),
            Err(why) => why,
        };
        let has_left = matches!(why, NodeError::WrongState { .. });
        let has_ended = matches!(state, UnitState::Exited { .. } | UnitState::Lost);
        if !has_left || has_ended || Instant::now() > deadline {
            return Err(why.into());
        }
        thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_one_or_two() {
        assert_eq!("80".parse(), Ok(Ports { here: 80, there: 80 }));
        assert_eq!("0:65535".parse(), Ok(Ports { here: 0, there: 65535 }));
        for wrong in ["", ":", "80:", "65536", "1:2:3"] {
            assert!(wrong.parse::<Ports>().is_err(), "{wrong}");
        }
    }
}
