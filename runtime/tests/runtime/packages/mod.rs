//! Programs of Debian for amd64, unmodified and dynamically linked: each is started by a script, natively and under the
//! runtime, and what the script prints must be the same. `make test-packages` also runs those that take long.

mod root;

use crate::run::{On, dist, output};
use root::root;
use std::path::Path;
use std::process::{Command, Output};

/// A test for each script.
macro_rules! programs {
    ($on:expr; $($name:ident)*) => {
        $(#[test]
        fn $name() {
            super::compare(stringify!($name), $on);
        })*
    };
}

mod x86_64 {
    programs! { crate::run::On::X86_64;
        apache bash cc1 gcc git gocr gzip haproxy lua luajit memcached nginx openssl openssl_keys perl php python
        redis ripgrep sqlite tcl xz zsh zstd
    }
}

mod aarch64 {
    programs! { crate::run::On::Aarch64;
        bash gocr lua memcached nginx perl ripgrep sqlite
    }
}

/// Ten seconds to minutes each.
#[cfg(feature = "long")]
mod long {
    use super::compare;

    mod x86_64 {
        programs! { crate::run::On::X86_64; caddy node sshd }
    }

    mod aarch64 {
        programs! { crate::run::On::Aarch64;
            caddy cc1 gcc git gzip haproxy luajit openssl openssl_keys python redis xz zstd
        }
    }
}

/// Run a script in namespaces of its own, in which `$RUN` starts a program natively or on `on`.
fn run(name: &str, on: Option<On>) -> Output {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/runtime/packages");
    let host = match on {
        None => "native",
        Some(On::X86_64) => "x86_64",
        Some(On::Aarch64) => "aarch64",
    };
    let mut command = Command::new(folder.join("enter.sh"));
    command.arg(root()).arg(dist()).arg(host);
    command.arg(folder.join("programs").join(name).with_extension("sh"));
    output(&mut command, b"")
}

fn compare(name: &str, on: On) {
    let native = run(name, None);
    let ours = run(name, Some(on));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(native.status.success() && !native.stdout.is_empty(), "{name} natively: {native:?}");
    assert_eq!(
        text(&ours.stdout),
        text(&native.stdout),
        "stdout of {name} on {on:?}: {}",
        text(&ours.stderr)
    );
    assert_eq!(text(&ours.stderr), text(&native.stderr), "stderr of {name} on {on:?}");
    assert_eq!(ours.status, native.status, "{name} on {on:?}");
}
