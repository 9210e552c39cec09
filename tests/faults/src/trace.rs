//! What a process asked of the kernel, in the order in which `strace -f -y` saw it.

use std::collections::HashMap;
use std::path::PathBuf;

/// One system call.
#[derive(Clone, Debug)]
pub struct Call {
    /// Its name.
    pub name: String,
    /// Its arguments as strace writes them.
    pub arguments: String,
    /// What it returned; `None` if the process ended in it.
    pub result: Option<i64>,
    /// The line of the trace where it began.
    pub began: usize,
    /// The line where it had returned.
    pub ended: usize,
}

impl Call {
    /// The file that the first argument, a descriptor, stands for.
    pub fn file(&self) -> Option<PathBuf> {
        let (descriptor, rest) = self.arguments.split_once('<')?;
        let (path, _) = rest.split_once('>')?;
        descriptor.parse::<u32>().ok()?;
        path.starts_with('/').then(|| PathBuf::from(path))
    }

    /// Its descriptor, if that is the first argument.
    pub fn descriptor(&self) -> Option<u32> {
        self.arguments.split(['<', ',']).next()?.parse().ok()
    }

    /// The texts in quotes among the arguments: paths or data, escaped as strace does.
    pub fn texts(&self) -> Vec<&str> {
        let mut texts = Vec::new();
        let mut rest = &self.arguments[..];
        while let Some(start) = rest.find('"') {
            let text = &rest[start + 1..];
            let Some(end) = closing(text) else { break };
            texts.push(&text[..end]);
            rest = &text[end + 1..];
        }
        texts
    }

    /// Whether it returned and did not fail.
    pub fn succeeded(&self) -> bool {
        self.result.is_some_and(|result| result >= 0)
    }
}

fn closing(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })
}

/// Understands a trace. Calls come in the order in which they began.
pub fn parse(trace: &str) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    let mut unfinished: HashMap<&str, usize> = HashMap::new();
    for (number, line) in trace.lines().enumerate() {
        let Some((thread, event)) = line.split_once(' ') else { continue };
        let event = event.trim_start();
        if let Some(resumed) = event.strip_prefix("<... ") {
            let Some((_, rest)) = resumed.split_once(" resumed>") else { continue };
            let Some(call) = unfinished.remove(thread).and_then(|index| calls.get_mut(index)) else { continue };
            let (arguments, result) = split_result(rest);
            call.arguments.push_str(arguments);
            call.result = result;
            call.ended = number;
        } else if let Some((name, rest)) = event.split_once('(')
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            let (arguments, result, done) = match rest.strip_suffix(" <unfinished ...>") {
                Some(arguments) => (arguments, None, false),
                None => {
                    let (arguments, result) = split_result(rest);
                    (arguments, result, true)
                }
            };
            if !done {
                unfinished.insert(thread, calls.len());
            }
            let ended = if done { number } else { usize::MAX };
            calls.push(Call { name: name.to_owned(), arguments: arguments.to_owned(), result, began: number, ended });
        }
    }
    calls
}

fn split_result(rest: &str) -> (&str, Option<i64>) {
    match rest.rsplit_once(") ") {
        Some((arguments, result)) => {
            let result = result.trim_start().strip_prefix("= ").and_then(|result| result.split([' ', '<']).next());
            (arguments, result.and_then(|result| result.parse().ok()))
        }
        None => (rest, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_was_interrupted_is_put_together() {
        let trace = "\
10 write(7</a/0.jnl>, \"w1n2;\\\"x\", 7) = 7
11 fdatasync(7</a/0.jnl> <unfinished ...>
10 write(1<pipe:[9]>, \"done\\n\", 5) = 5
11 <... fdatasync resumed>)         = 0
12 openat(AT_FDCWD</>, \"/a/b\", O_RDONLY) = -1 ENOENT (No such file or directory)
12 fsync(8</a> <unfinished ...>
12 +++ killed by SIGKILL +++
";
        let calls = parse(trace);
        assert_eq!(calls.len(), 5);
        assert_eq!((calls[0].file(), calls[0].texts()), (Some("/a/0.jnl".into()), vec!["w1n2;\\\"x"]));
        assert_eq!((calls[1].result, calls[1].began, calls[1].ended), (Some(0), 1, 3));
        assert_eq!((calls[2].descriptor(), calls[2].file()), (Some(1), None));
        assert!(!calls[3].succeeded() && calls[3].texts() == ["/a/b"]);
        assert_eq!((calls[4].result, calls[4].file()), (None, Some("/a".into())));
    }
}
