//! A process of another language that obeys requests (`tests/interop/README.md`).

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, mpsc};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value as Json, json};
use tokio::sync::oneshot;
use zlink_store::{Code, Error, Outcome};

use super::{Answer, ms, wire};

/// One process for each language: all tests share it, and it ends with them.
static NODE: LazyLock<Participant> = LazyLock::new(|| Participant::start("node", &["tests/interop/node/participant.mjs"]));
static JAVA: LazyLock<Participant> = LazyLock::new(|| {
    let class_path = std::fs::read_to_string(root().join("target/interop-java.classpath")).expect("`make test-faults` builds it");
    // All its threads at once would be many, and its collector's too.
    Participant::start("java", &["-XX:+UseSerialGC", "-cp", class_path.trim(), "tests/interop/java/Participant.java"])
});

/// A store in such a process.
#[derive(Clone, Copy, Debug)]
pub struct Remote {
    at: &'static Participant,
    store: u64,
}

pub(super) fn node() -> Remote {
    NODE.remote()
}

pub(super) fn java() -> Remote {
    JAVA.remote()
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

#[derive(Debug)]
struct Participant {
    name: &'static str,
    lines: mpsc::Sender<String>,
    /// Who waits for the answers; `None` once the process has ended.
    waiting: Mutex<Option<HashMap<u64, Waiting>>>,
    numbers: AtomicU64,
}

#[derive(Debug)]
struct Waiting {
    answered: oneshot::Sender<Json>,
    /// What gives back the lease that the answer may bring, if nobody waits for it any more.
    undo: Option<Json>,
}

impl Participant {
    fn start(name: &'static str, arguments: &[&str]) -> Self {
        let mut command = Command::new(name);
        command.args(arguments).current_dir(root()).stdin(Stdio::piped()).stdout(Stdio::piped());
        // Cargo names its own folder there, with a library in it that nobody has asked for.
        command.env_remove("LD_LIBRARY_PATH");
        let mut process = command.spawn().unwrap_or_else(|error| panic!("{name}: {error}"));
        let (mut input, output) = (process.stdin.take().expect("a pipe"), process.stdout.take().expect("a pipe"));
        let (lines, to_write) = mpsc::channel::<String>();
        thread::spawn(move || {
            while let Ok(mut line) = to_write.recv() {
                line.push('\n');
                if input.write_all(line.as_bytes()).is_err() {
                    return;
                }
            }
        });
        let (answers, heard) = mpsc::channel::<String>();
        thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            for line in lines {
                if answers.send(line).is_err() {
                    return;
                }
            }
        });
        thread::spawn(move || {
            let participant = if name == "node" { &*NODE } else { &*JAVA };
            for line in heard {
                participant.hear(&line);
            }
            *participant.waiting.lock() = None;
            let how = process.wait();
            let _ = writeln!(std::io::stderr(), "the process of {name} has ended: {how:?}");
        });
        Self { name, lines, waiting: Mutex::new(Some(HashMap::new())), numbers: AtomicU64::new(0) }
    }

    fn remote(&'static self) -> Remote {
        Remote { at: self, store: self.numbers.fetch_add(1, Ordering::Relaxed) }
    }

    fn hear(&self, line: &str) {
        let answer: Json = line.parse().unwrap_or_else(|error| panic!("{} said {line:?}: {error}", self.name));
        let number = answer["id"].as_u64().expect("an answer's number");
        let waiting = self.waiting.lock().as_mut().and_then(|waiting| waiting.remove(&number));
        // Nobody asked to hear of a cancellation.
        let Some(Waiting { answered, undo }) = waiting else { return };
        if let Err(unheard) = answered.send(answer) {
            self.forget(&unheard, undo);
        }
    }

    /// Clears away what an answer brought that nobody waits for.
    fn forget(&self, answer: &Json, undo: Option<Json>) {
        let result = &answer["result"];
        wire::discard(result);
        if let Some(undo) = undo.filter(|_| result["kind"] == "lease") {
            self.tell(undo);
        }
    }

    /// Sends a request whose answer nobody waits for.
    fn tell(&self, mut request: Json) {
        request["id"] = json!(self.numbers.fetch_add(1, Ordering::Relaxed));
        // A process that has ended needs to be told nothing.
        let _ = self.lines.send(request.to_string());
    }

    async fn request(&'static self, mut request: Json) -> Result<Json, Error> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        request["id"] = json!(number);
        let (answered, answer) = oneshot::channel();
        let ended = || Error::internal(format!("the process of {} has ended", self.name));
        let undo = (request["do"] == "lockAcquire")
            .then(|| json!({ "do": "lockRelease", "store": request["store"], "lease": request["lease"] }));
        self.waiting.lock().as_mut().ok_or_else(ended)?.insert(number, Waiting { answered, undo: undo.clone() });
        let mut under_way = UnderWay { at: self, number, answer, undo, over: false };
        self.lines.send(request.to_string()).map_err(|_| ended())?;
        let mut answer = (&mut under_way.answer).await.map_err(|_| ended())?;
        under_way.over = true;
        match answer.get("error") {
            None => Ok(answer["result"].take()),
            Some(error) => Err(error_of(error)),
        }
    }
}

/// A request; cancelled when its caller is gone.
struct UnderWay {
    at: &'static Participant,
    number: u64,
    answer: oneshot::Receiver<Json>,
    undo: Option<Json>,
    over: bool,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        self.answer.close();
        match self.answer.try_recv() {
            Ok(answer) => self.at.forget(&answer, self.undo.take()),
            Err(_) => self.at.tell(json!({ "do": "cancel", "request": self.number })),
        }
    }
}

impl Remote {
    /// Opens the store.
    pub(super) async fn open(self, kind: &str, url: &str, name: &Json, timeout: Duration) {
        let mut request = json!({
            "do": "open", "store": self.store, "kind": kind, "engine": "redis", "address": url, "operationTimeoutMs": ms(timeout),
        });
        for (field, value) in name.as_object().into_iter().flatten() {
            request[field] = value.clone();
        }
        self.at.request(request).await.expect("a store");
    }

    /// Has the store do something.
    pub(super) fn ask<T, F>(self, verb: &str, mut fields: Json, parse: F) -> Answer<T>
    where
        F: FnOnce(Json) -> Result<T, Error> + Send + 'static,
    {
        fields["do"] = json!(verb);
        fields["store"] = json!(self.store);
        Box::pin(async move { parse(self.at.request(fields).await?) })
    }

    /// A number that nobody else in that process has.
    pub(super) fn number(self) -> u64 {
        self.at.numbers.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) async fn close(self) {
        self.at.request(json!({ "do": "close", "store": self.store })).await.expect("a store that can be closed");
    }
}

fn error_of(error: &Json) -> Error {
    let text = |name: &str| error[name].as_str().unwrap_or_default();
    let code = Code::ALL.into_iter().find(|code| code.as_str() == text("code")).unwrap_or(Code::Internal);
    let outcome = if text("outcome") == Outcome::NotApplied.as_str() { Outcome::NotApplied } else { Outcome::Unknown };
    Error::new(code, outcome, text("message"))
}
