//! Nodes that join, leave, and are asked by those who are no business of theirs.

use crate::dam::passing;
use crate::lab::{TestLab, wait_for};
use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, PKCS_ED25519};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value as Json;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tranship_lab::{Lab, companions};

/// A node that is not of the lab: started as by hand, but in namespaces of its own. It ends with this.
struct Lonely {
    process: Child,
    port: u16,
    log: std::path::PathBuf,
}

impl Lonely {
    fn start(lab: &TestLab) -> Lonely {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (state, log) = (lab.path("lonely"), lab.path("lonely.log"));
        fs::create_dir(&state).unwrap();
        let root = Lab::new(None).x86_root(&mut |_| ()).unwrap();
        let installed = companions().unwrap();
        let mut command = Command::new(installed.join("node-x86_64"));
        command
            .arg("boot")
            .arg("--root")
            .arg(root)
            .arg("--state")
            .arg(&state)
            .arg("--installed")
            .arg(&installed);
        command.args(["--listen", &format!("127.0.0.1:{port}")]).stdin(Stdio::null());
        let process = command.stdout(Stdio::null()).stderr(File::create(&log).unwrap()).spawn().unwrap();
        Lonely { process, port, log }
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The token that it has printed last, once it has printed `count`.
    fn token(&self, count: usize) -> String {
        wait_for("the node's token", || {
            let log = fs::read_to_string(&self.log).unwrap();
            // It prints a line in pieces.
            let (whole, _) = log.rsplit_once('\n').unwrap_or_default();
            let lines: Vec<&str> = whole.lines().filter(|line| line.contains("--token ")).collect();
            (lines.len() == count).then(|| lines[count - 1].rsplit(' ').next().unwrap().to_owned())
        })
    }
}

impl Drop for Lonely {
    fn drop(&mut self) {
        // The node's first process goes with it.
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// The command fails, and says so with these words.
fn refused(lab: &TestLab, words: &str, arguments: &[&str]) {
    let output = lab.run(arguments);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "tranship {}: {errors}", arguments.join(" "));
    assert!(errors.contains(words), "no {words:?} in {errors}");
}

#[test]
fn a_node_joins_once_with_its_token_and_leaves() {
    let lab = TestLab::without_nodes("joining");
    let node = Lonely::start(&lab);
    let (address, token) = (node.address(), node.token(1));
    let add = |name, token| ["node", "add", name, &address, "--token", token].map(str::to_owned);
    let refuse = |words: &str, line: [String; 6]| refused(&lab, words, &line.each_ref().map(String::as_str));

    refused(&lab, "joined another authority, or none", &["node", "add", "edge", &address]);
    let other_fingerprint = format!("{}{}", &token[..token.len() - 4], "0000");
    refuse("the token is not its own", add("edge", &other_fingerprint));
    let other_secret = format!("{}{}", "0000", &token[4..]);
    refuse("tried 2 more times", add("edge", &other_secret));
    assert_eq!(lab.json(&["node", "ls"]), Json::Array(vec![]));

    lab.ok(&add("edge", &token).each_ref().map(String::as_str));
    refuse("the token is not its own", add("again", &token));
    refuse("registered already", add("edge", &token));
    refuse("of the lab", add("x86", &token));
    refuse("no node's name", add("Edge", &token));
    let shown = lab.json(&["node", "inspect", "edge"]);
    assert_eq!(
        (&shown["state"], &shown["units"], &shown["isa"]),
        (&"up".into(), &0.into(), &"x86_64".into())
    );
    lab.ok(&["run", "--node", "edge", "--", "busybox", "true"]);

    // Somebody else's authority, under the same name: it vouches for nobody that this node admits.
    let config = lab.path("config/tranship");
    let key = fs::metadata(config.join("ca.key")).unwrap();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&key.permissions()) & 0o777, 0o600);
    let own = lab.path("own");
    fs::rename(&config, &own).unwrap();
    refused(&lab, "joined another authority, or none", &["node", "add", "edge", &address]);
    fs::remove_dir_all(&config).unwrap();
    fs::rename(&own, &config).unwrap();

    // The list was lost.
    fs::remove_file(config.join("nodes.json")).unwrap();
    refused(&lab, "it is another node", &["node", "add", "else", &address]);
    lab.ok(&["node", "add", "edge", &address]);

    let removed = lab.json(&["node", "rm", "edge"]);
    assert_eq!(removed["token"], node.token(2).as_str());
    refused(&lab, "edge", &["node", "inspect", "edge"]);
    refused(&lab, "joined another authority, or none", &["node", "add", "edge", &address]);
    refuse("the token is not its own", add("edge", &token));
    lab.ok(&add("edge", &node.token(2)).each_ref().map(String::as_str));
}

#[test]
fn a_token_cannot_be_guessed() {
    let lab = TestLab::without_nodes("guessing");
    let node = Lonely::start(&lab);
    let (address, token) = (node.address(), node.token(1));
    let wrong = format!("{}{}", "0000", &token[4..]);
    for words in ["tried 2 more times", "tried 1 more times", "used up", "used up"] {
        refused(&lab, words, &["node", "add", "edge", &address, "--token", &wrong]);
    }
    refused(&lab, "used up", &["node", "add", "edge", &address, "--token", &token]);
}

#[test]
fn a_node_that_is_gone_can_be_forgotten() {
    let lab = TestLab::without_nodes("forgetting");
    let node = Lonely::start(&lab);
    let (address, token) = (node.address(), node.token(1));
    lab.ok(&["node", "add", "edge", &address, "--token", &token]);
    drop(node);
    assert_eq!(lab.json(&["node", "ls"])[0]["state"], "down");
    let removed = lab.json(&["node", "rm", "edge"]);
    assert!(removed["token"].is_null() && removed["error"].as_str().unwrap().contains("edge"));
    assert_eq!(lab.json(&["node", "ls"]), Json::Array(vec![]));
}

// ---- strangers ----

/// Who a client says it is.
struct Claim {
    /// What its certificate says.
    name: &'static str,
    /// First and last year in which it is valid.
    years: [i32; 2],
    usage: ExtendedKeyUsagePurpose,
}

const OPERATOR: Claim =
    Claim { name: "operator.tranship", years: [1970, 9999], usage: ExtendedKeyUsagePurpose::ClientAuth };

fn new_key() -> KeyPair {
    KeyPair::generate_for(&PKCS_ED25519).unwrap()
}

/// The lab's authority: its key and certificate.
fn authority_of(lab: &TestLab) -> (KeyPair, String) {
    let file: Json = serde_json::from_slice(&fs::read(lab.state().join("lab.json")).unwrap()).unwrap();
    let text = |what: &str| file["authority"][what].as_str().unwrap().to_owned();
    (KeyPair::from_pem(&text("key")).unwrap(), text("certificate"))
}

/// What an authority's certificate is made from.
fn authority_parameters() -> CertificateParams {
    let mut params = parameters("authority.tranship", [1970, 9999]);
    params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    params
}

fn parameters(name: &str, years: [i32; 2]) -> CertificateParams {
    let mut params = CertificateParams::new([name.to_owned()]).unwrap();
    [params.not_before, params.not_after] = years.map(|year| rcgen::date_time_ymd(year, 1, 1));
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    params
}

/// A connection to node x86 as `claim` says, signed with `signer`; or without any certificate. The node is believed
/// by `authority`.
fn connect(
    lab: &TestLab,
    authority: &str,
    claim: Option<(Claim, KeyPair)>,
) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    let pem = rustls::pki_types::pem::PemObject::from_pem_slice(authority.as_bytes());
    roots.add(CertificateDer::clone(&pem.unwrap())).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.unwrap().with_root_certificates(roots);
    let config = match claim {
        None => builder.with_no_client_auth(),
        Some((claim, signer)) => {
            let mut params = parameters(claim.name, claim.years);
            params.extended_key_usages = vec![claim.usage.clone()];
            let key = new_key();
            let signed = params.signed_by(&key, &Issuer::new(authority_parameters(), signer)).unwrap();
            let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
            builder.with_client_auth_cert(vec![signed.der().clone()], key).unwrap()
        }
    };
    let name = ServerName::try_from("x86.node.tranship").unwrap();
    StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), dial(lab))
}

fn dial(lab: &TestLab) -> TcpStream {
    let file: Json = serde_json::from_slice(&fs::read(lab.state().join("lab.json")).unwrap()).unwrap();
    let port = u16::try_from(file["nodes"]["x86"]["port"].as_u64().unwrap()).unwrap();
    let socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    socket
}

/// A message as it is framed.
fn frame(message: &str) -> Vec<u8> {
    let lengths = [&(message.len() as u32).to_le_bytes()[..], &0u64.to_le_bytes()].concat();
    [&lengths, message.as_bytes()].concat()
}

/// Say hello and ask for something; all that is answered, or why nothing is.
fn ask(mut node: impl Read + Write, request: &str) -> Result<String, String> {
    let hello = frame(&format!("{{\"protocol\":{}}}", tranship_node::protocol::VERSION));
    let mut talk = || {
        node.write_all(&hello)?;
        node.write_all(&frame(request))?;
        let mut answers = [0; 1 << 12];
        let mut got = 0;
        while !answers[..got].windows(6).any(|word| word == b"\"done\"" || word == b"\"error") {
            match node.read(&mut answers[got..])? {
                0 => break,
                n => got += n,
            }
        }
        Ok(String::from_utf8_lossy(&answers[..got]).into_owned())
    };
    talk().map_err(|why: std::io::Error| why.to_string())
}

#[test]
fn nobody_is_answered_whom_the_authority_does_not_vouch_for() {
    let lab = TestLab::with("strangers", "x86");
    let (_, authority) = authority_of(&lab);
    let signer = || authority_of(&lab).0;
    let answer = |claim, request| ask(connect(&lab, &authority, claim), request);
    let serves = || assert!(answer(Some((OPERATOR, signer())), "\"info\"").unwrap().contains("\"done\""));
    serves();

    let expect = |words: &str, claim| {
        let answer = answer(claim, "\"info\"");
        assert!(answer.as_ref().is_err_and(|why| why.contains(words)), "no {words:?} in {answer:?}");
        serves();
    };
    expect("CertificateRequired", None);
    expect("DecryptError", Some((OPERATOR, new_key())));
    expect("CertificateExpired", Some((Claim { years: [1970, 1999], ..OPERATOR }, signer())));
    // This year's, by the clock: there is no clock.
    expect("CertificateExpired", Some((Claim { years: [2026, 2100], ..OPERATOR }, signer())));
    let server = Claim { usage: ExtendedKeyUsagePurpose::ServerAuth, ..OPERATOR };
    expect("ertificate", Some((server, signer())));

    // Another node, and one whose name is nobody's, may not ask for what is the operator's.
    for name in ["x86b.node.tranship", "operator.node.tranship", "operator.tranship.node.tranship"] {
        let claim = || Some((Claim { name, ..OPERATOR }, signer()));
        for request in ["\"info\"", "\"list\"", "\"shutdown\"", "\"leave\"", "{\"put-object\":\"00\"}"] {
            let answer = answer(claim(), request).unwrap();
            assert!(
                answer.contains("forbidden") && !answer.contains("\"done\""),
                "{name}, {request}: {answer}"
            );
        }
        let asked = "{\"tree\":\"nothing\"}";
        assert!(answer(claim(), asked).unwrap().contains("no-unit"));
    }
    serves();
}

#[test]
fn bytes_that_are_no_handshake_are_refused() {
    let lab = TestLab::with("no_handshake", "x86");
    let bytes: [&[u8]; 5] = [
        &frame("{\"protocol\":4,\"token\":\"\"}"),
        b"GET / HTTP/1.1\r\n\r\n",
        &[0; 4096],
        &[0xff; 70_000],
        // A record that is announced and does not come.
        &[22, 3, 1, 0x3f, 0xff, 1],
    ];
    for bytes in bytes {
        let mut socket = dial(&lab);
        // It may be closed before all has been sent.
        let _ = socket.write_all(bytes);
        let mut answer = Vec::new();
        let _ = socket.read_to_end(&mut answer);
        // At most an alert: one record, 21, of two bytes.
        assert!(answer.is_empty() || answer.len() == 7 && answer[0] == 21, "{answer:?}");
    }
    // One that says nothing at all.
    let silent = dial(&lab);
    lab.ok(&["run", "--node", "x86", "--", "busybox", "true"]);
    drop(silent);
}

#[test]
fn a_recorded_connection_cannot_be_replayed() {
    let lab = TestLab::with("replayed", "x86");
    let recorded = passing(&lab, "x86", |state| {
        let line = [
            "--state",
            state.to_str().unwrap(),
            "run",
            "--node",
            "x86",
            "--name",
            "once",
            "--",
            "busybox",
            "true",
        ];
        lab.ok(&line);
        lab.ok(&["rm", "once"]);
    });
    assert!(recorded.len() > 3, "{} connections", recorded.len());
    for connection in &recorded {
        let mut socket = dial(&lab);
        let _ = socket.write_all(connection);
        let _ = socket.shutdown(Shutdown::Write);
        let mut answer = Vec::new();
        let _ = socket.read_to_end(&mut answer);
        // Its part of the handshake, and no more than an alert after that.
        assert!(answer.len() < 4096, "{} bytes are answered", answer.len());
    }
    assert!(lab.status("x86", "once").is_none(), "a request was served again");
    lab.ok(&["run", "--node", "x86", "--name", "once", "--", "busybox", "true"]);
}

#[test]
fn a_node_that_is_another_one_is_not_spoken_to() {
    let lab = TestLab::up("wrong_node");
    let path = lab.state().join("lab.json");
    let mut file: Json = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let port = |node: &str| file["nodes"][node]["port"].clone();
    let [one, other] = [port("x86"), port("x86b")];
    file["nodes"]["x86"]["port"] = other;
    file["nodes"]["x86b"]["port"] = one;
    let swapped = lab.path("swapped");
    fs::create_dir(&swapped).unwrap();
    fs::write(swapped.join("lab.json"), file.to_string()).unwrap();
    let run = ["run", "--node", "x86", "--", "busybox", "true"];
    let output = lab.run(&[&["--state", text(&swapped)], &run[..]].concat());
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(125) && errors.contains("it is another node"), "{errors}");
    lab.ok(&run);
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
