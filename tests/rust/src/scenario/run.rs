//! Runs a scenario's steps (README, Steps around them).

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use serde_json::{Map, Value};

use super::Scenario;
use super::calls::{Calling, Store, VERBS, cancelled, location, relocation};
use super::expect::{Miss, expect, field, show};
use super::project::{self, Leases, kind, lock_options};
use super::results::{Versions, error_result};
use super::started::Started;
use super::value::{Fault, Val, Vars};
use crate::place::{Place, TIMEOUT_MS};
use zlink_store::{Cancellation, DistributedLocks, Error, LocationStore, Project, RelocationStore, WithLockError};

/// How long a scenario may take.
const LONGEST: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(3);
const UNTIL_MS: i64 = 20_000;

/// Runs a scenario at a place of its own.
///
/// # Errors
/// Which step failed, and why.
pub async fn run(scenario: &Scenario, place: &Place, capabilities: &[&str]) -> Result<(), String> {
    let mut run = Run {
        place,
        capabilities,
        named: HashMap::new(),
        opened: Vec::new(),
        vars: Vars::default(),
        versions: Versions::default(),
        leases: Leases::default(),
        invocations: HashMap::new(),
        started: Started::default(),
    };
    let ended = tokio::time::timeout(LONGEST, run.steps(&scenario.steps, "")).await;
    let result = ended.unwrap_or_else(|_| Err(format!("not done after {} s", LONGEST.as_secs())));
    for store in &run.opened {
        store.close().await;
    }
    result
}

struct Run<'a> {
    place: &'a Place,
    capabilities: &'a [&'a str],
    named: HashMap<String, Store>,
    opened: Vec<Store>,
    vars: Vars,
    versions: Versions,
    leases: Leases,
    invocations: HashMap<String, DistributedLocks>,
    started: Started,
}

impl Run<'_> {
    /// Runs steps one after the other; `at` says where they stand. Boxed, since steps hold steps.
    fn steps<'b>(&'b mut self, steps: &'b [Value], at: &'b str) -> Pin<Box<dyn Future<Output = Result<(), Fault>> + Send + 'b>> {
        Box::pin(async move {
            for (index, step) in steps.iter().enumerate() {
                let at = format!("{at}{index}");
                let step = step.as_object().ok_or_else(|| format!("step {at} is no object"))?;
                if self.is_meant(step) {
                    self.step(step, &at)
                        .await
                        .map_err(|said| if said.starts_with("step ") { said } else { format!("step {at}: {said}") })?;
                }
            }
            Ok(())
        })
    }

    fn is_meant(&self, step: &Map<String, Value>) -> bool {
        let has = |capability: &Value| {
            let name = capability.as_str().unwrap_or_default();
            match name.strip_prefix('!') {
                Some(name) => !self.capabilities.contains(&name),
                None => self.capabilities.contains(&name),
            }
        };
        match step.get("if") {
            None => true,
            Some(Value::Array(all)) => all.iter().all(has),
            Some(one) => has(one),
        }
    }

    async fn step(&mut self, step: &Map<String, Value>, at: &str) -> Result<(), Fault> {
        if step.contains_key("for") {
            return self.repeat(step, at).await;
        }
        if let Some(inner) = step.get("until") {
            return self.until(step, inner.as_object().ok_or("until what?")?).await;
        }
        if let Some(Value::Array(steps)) = step.get("together") {
            return self.together(step, steps).await;
        }
        if let Some(value) = step.get("check") {
            let value = self.vars.eval(value)?;
            return held(field(Some(&value), &step["expect"], &self.vars), &value);
        }
        if let Some(name) = step.get("start") {
            let (name, cancellation) = (self.vars.text(name)?, Cancellation::new());
            let form = step.get("call").and_then(Value::as_object).ok_or("start what?")?;
            let calling = self.call_with(form, &self.vars.clone(), Some(cancellation.clone()))?;
            self.started.start(name, calling, cancellation).await;
            return Ok(());
        }
        if let Some(name) = step.get("cancel") {
            return self.started.cancel(&self.vars.text(name)?);
        }
        if let Some(name) = step.get("pending") {
            return self.started.pending(&self.vars.text(name)?);
        }
        if let Some(name) = step.get("locks") {
            return self.invocation(step, name);
        }
        let result = if let Some(name) = step.get("open") {
            self.open(step, name)?
        } else if let Some(name) = step.get("close") {
            let name = self.vars.text(name)?;
            let store = self.named.get(&name).ok_or_else(|| format!("no store {name}"))?;
            store.close().await;
            kind("closed")
        } else if let Some(name) = step.get("stats") {
            let name = self.vars.text(name)?;
            let begun = self.named.get(&name).ok_or_else(|| format!("no store {name}"))?.begun();
            Val::fields([("kind", Val::text("stats")), ("operations", Val::Number(i64::try_from(begun).unwrap_or(i64::MAX)))])
        } else if let Some(name) = step.get("await") {
            let name = self.vars.text(name)?;
            self.started.result(&name).await?
        } else if let Some(key) = step.get("withLock") {
            self.with_lock(step, key, at).await?
        } else {
            self.call(step, &self.vars.clone())?.await?
        };
        self.judge(step, &result, &self.vars)?;
        self.save(step, result)
    }

    fn save(&mut self, step: &Map<String, Value>, result: Val) -> Result<(), Fault> {
        if let Some(name) = step.get("save") {
            let name = self.vars.text(name)?;
            self.vars.set(&name, result);
        }
        Ok(())
    }

    /// Compares a call's result with what its step expects.
    fn judge(&self, step: &Map<String, Value>, result: &Val, vars: &Vars) -> Result<(), Fault> {
        match step.get("expect") {
            Some(expectation) => held(expect(result, expectation, vars), result),
            None if step.contains_key("put") || step.contains_key("delete") => {
                held(expect(result, &Value::from("applied"), vars), result)
            }
            None if result.get("error").is_some() => Err(format!("it failed: {}", show(result))),
            None => Ok(()),
        }
    }

    fn call(&mut self, step: &Map<String, Value>, vars: &Vars) -> Result<Calling, Fault> {
        self.call_with(step, vars, cancelled(step))
    }

    fn call_with(
        &mut self,
        step: &Map<String, Value>,
        vars: &Vars,
        cancellation: Option<Cancellation>,
    ) -> Result<Calling, Fault> {
        let verb = VERBS.iter().find(|(verb, _)| step.contains_key(*verb));
        let (_, wanted) = verb.ok_or_else(|| format!("no verb among {:?}", step.keys().collect::<Vec<_>>()))?;
        match self.store(step, vars, wanted)? {
            Store::Location(store) => location(step, &store, vars, &self.versions, cancellation),
            Store::Relocation(store) => relocation(step, &store, vars, cancellation),
            Store::Project(project, locks) => {
                let locks = self.locks(step, vars, locks)?;
                project::call(step, &project, &locks, vars, &self.leases, cancellation)
            }
        }
    }

    /// The store that a step uses; `wanted` is the kind, and the name of that which needs no opening.
    fn store(&mut self, step: &Map<String, Value>, vars: &Vars, wanted: &str) -> Result<Store, Fault> {
        let name = step.get("on").map_or(Ok(wanted.to_owned()), |name| vars.text(name))?;
        if !self.named.contains_key(&name) && matches!(name.as_str(), "location" | "relocation" | "project") {
            let store = self.make(&Map::new(), &name)?.map_err(|error| error.to_string())?;
            self.keep(&name, store);
        }
        self.named.get(&name).cloned().ok_or_else(|| format!("no store {name}"))
    }

    /// The invocation that a step names, or else its store's own.
    fn locks(&self, step: &Map<String, Value>, vars: &Vars, own: DistributedLocks) -> Result<DistributedLocks, Fault> {
        let Some(name) = step.get("invocation") else { return Ok(own) };
        let name = vars.text(name)?;
        self.invocations.get(&name).cloned().ok_or_else(|| format!("no invocation {name}"))
    }

    fn project(&mut self, step: &Map<String, Value>) -> Result<(Project, DistributedLocks), Fault> {
        match self.store(step, &self.vars.clone(), "project")? {
            Store::Project(project, locks) => Ok((project, locks)),
            _ => Err("it wants a project".to_owned()),
        }
    }

    fn invocation(&mut self, step: &Map<String, Value>, name: &Value) -> Result<(), Fault> {
        let (project, _) = self.project(step)?;
        let deadline = step.get("deadlineMs").map(|deadline| self.vars.number(deadline)).transpose()?;
        let locks = match deadline {
            Some(deadline) => {
                project.locks_within(Duration::from_millis(u64::try_from(deadline).map_err(|error| error.to_string())?))
            }
            None => project.locks(),
        };
        self.invocations.insert(self.vars.text(name)?, locks);
        Ok(())
    }

    async fn with_lock(&mut self, step: &Map<String, Value>, key: &Value, at: &str) -> Result<Val, Fault> {
        let (_, own) = self.project(step)?;
        let vars = self.vars.clone();
        let locks = self.locks(step, &vars, own)?;
        let options = match lock_options(step, &vars)? {
            Ok(options) => options,
            Err(error) => return Ok(error_result(&error)),
        };
        let steps = step.get("steps").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let text = |field| step.get(field).map(|text| vars.text(text)).transpose();
        let (throws, returns) = (text("throws")?, text("returns")?);
        let inside = format!("{at}.");
        let mut fault = None;
        let (run, fault_in) = (&mut *self, &mut fault);
        let done = locks.with_lock(vars.text(key)?, options, move |lease| async move {
            let ran = match run.leases.granted(lease) {
                Ok(lease) => {
                    run.vars.set("lease", lease);
                    run.steps(steps, &inside).await
                }
                Err(said) => Err(said),
            };
            if let Err(said) = ran {
                *fault_in = Some(said);
            }
            throws.map_or(Ok(()), Err)
        });
        let done = done.await;
        if let Some(said) = fault {
            return Err(said);
        }
        Ok(match done {
            Ok(()) => match returns {
                Some(value) => Val::fields([("kind", Val::text("done")), ("value", Val::text(value))]),
                None => kind("done"),
            },
            Err(WithLockError::Work(thrown)) => Val::fields([("kind", Val::text("failed")), ("value", Val::text(thrown))]),
            Err(WithLockError::Unavailable) => kind("unavailable"),
            Err(WithLockError::Lost) => kind("lost"),
            Err(WithLockError::Store(error)) => error_result(&error),
        })
    }

    fn keep(&mut self, name: &str, store: Store) {
        self.opened.push(store.clone());
        self.named.insert(name.to_owned(), store);
    }

    fn open(&mut self, step: &Map<String, Value>, name: &Value) -> Result<Val, Fault> {
        let wanted = step.get("store").and_then(Value::as_str).unwrap_or("location");
        match self.make(step, wanted)? {
            Ok(store) => {
                let name = self.vars.text(name)?;
                self.keep(&name, store);
                Ok(kind("opened"))
            }
            Err(error) => Ok(error_result(&error)),
        }
    }

    /// Makes a store object; the inner error is the store's.
    fn make(&self, step: &Map<String, Value>, wanted: &str) -> Result<Result<Store, Error>, Fault> {
        let text = |field, default: &str| step.get(field).map_or(Ok(default.to_owned()), |text| self.vars.text(text));
        let timeout = match step.get("timeoutMs") {
            Some(timeout) => u64::try_from(self.vars.number(timeout)?).map_err(|error| error.to_string())?,
            None => TIMEOUT_MS,
        };
        if wanted == "project" {
            let exact = step.contains_key("exactWorkspace");
            let workspace = text(if exact { "exactWorkspace" } else { "workspace" }, "w")?;
            let url = text("url", self.place.url())?;
            let project = self.place.project(&url, &workspace, exact, &text("project", "p")?, timeout);
            return Ok(project.map(|project| Store::Project(project.clone(), project.locks())));
        }
        let relocation = wanted == "relocation";
        let options = if step.contains_key("exactPrefix") {
            Place::exact_options(&text("exactPrefix", "")?, timeout)
        } else {
            self.place.options(&text("prefix", if relocation { "r" } else { "l" })?, timeout)
        };
        Ok(options.and_then(|options| {
            Ok(if relocation {
                Store::Relocation(RelocationStore::open(self.place.url(), options)?)
            } else {
                Store::Location(LocationStore::open(self.place.url(), options)?)
            })
        }))
    }

    async fn repeat(&mut self, step: &Map<String, Value>, at: &str) -> Result<(), Fault> {
        let name = step["for"].as_str().ok_or("for what?")?;
        let values: Vec<Val> = match step.get("in") {
            Some(Value::Array(values)) => values.iter().cloned().map(Val::Form).collect(),
            _ => {
                let from = step.get("from").map_or(Ok(0), |from| self.vars.number(from))?;
                (from..from + self.vars.number_of(step, "times")?).map(Val::Number).collect()
            }
        };
        let steps = step.get("steps").and_then(Value::as_array).ok_or("for without steps")?;
        for (index, value) in values.into_iter().enumerate() {
            self.vars.set(name, value);
            self.steps(steps, &format!("{at}[{name} #{index}].")).await?;
        }
        Ok(())
    }

    async fn until(&mut self, step: &Map<String, Value>, inner: &Map<String, Value>) -> Result<(), Fault> {
        let within = step.get("withinMs").map_or(Ok(UNTIL_MS), |within| self.vars.number(within))?;
        let within = Duration::from_millis(u64::try_from(within).map_err(|error| error.to_string())?);
        let mut last = Val::List(Vec::new());
        let tries = async {
            loop {
                last = self.call(inner, &self.vars.clone())?.await?;
                let missed = match self.judge(inner, &last, &self.vars) {
                    Ok(()) => return Ok(()),
                    Err(missed) => missed,
                };
                if let Some(meanwhile) = step.get("meanwhile") {
                    held(expect(&last, meanwhile, &self.vars), &last)
                        .map_err(|said| format!("neither {missed}\nnor meanwhile {said}"))?;
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        let ended = tokio::time::timeout(within, tries).await;
        ended.unwrap_or_else(|_| Err(format!("not within {} ms; the last result was {}", within.as_millis(), show(&last))))?;
        self.save(inner, last)
    }

    async fn together(&mut self, step: &Map<String, Value>, steps: &[Value]) -> Result<(), Fault> {
        let steps = self
            .vars
            .clone()
            .expand(steps)?
            .into_iter()
            .map(|(form, vars)| (form.as_object().cloned().unwrap_or_default(), vars));
        let mut calls = Vec::new();
        for (form, vars) in steps.filter(|(form, _)| self.is_meant(form)).collect::<Vec<_>>() {
            let calling = self.call(&form, &vars)?;
            calls.push((form, vars, calling));
        }
        let running: Vec<_> = calls.into_iter().map(|(form, vars, calling)| (form, vars, tokio::spawn(calling))).collect();
        let mut counts: HashMap<String, i64> = HashMap::new();
        for (form, vars, task) in running {
            let result = task.await.map_err(|error| error.to_string())??;
            if form.contains_key("expect") {
                self.judge(&form, &result, &vars)?;
            }
            let kind = result.get("kind").or(result.get("error")).and_then(Val::as_text).unwrap_or_default().to_owned();
            *counts.entry(kind.clone()).or_default() += 1;
            if let Some(name) = form.get("save") {
                self.vars.set(&vars.text(name)?, result.clone());
            }
            if let Some(name) = step.get("save").and_then(|save| save.get(&kind)).and_then(Value::as_str) {
                self.vars.set(name, result);
            }
        }
        if let Some(expected) = step.get("expect").and_then(Value::as_object) {
            for (kind, matcher) in expected {
                let count = Val::Number(counts.get(kind).copied().unwrap_or_default());
                held(field(Some(&count), matcher, &self.vars), &count)
                    .map_err(|said| format!("{kind}: {said} among {counts:?}"))?;
            }
            if counts.keys().any(|kind| !expected.contains_key(kind)) {
                return Err(format!("unexpected results: {counts:?}"));
            }
        }
        Ok(())
    }
}

fn held(matched: Result<(), Miss>, result: &Val) -> Result<(), Fault> {
    matched.map_err(|miss| match miss {
        Miss::Mismatch(said) => format!("{said} (result: {})", show(result)),
        Miss::Fault(fault) => format!("the scenario is wrong: {fault}"),
    })
}
