//! Runs a scenario's steps (README, Steps around them).

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use serde_json::{Map, Value};

use super::Scenario;
use super::calls::{Calling, Store, VERBS, Versions, call, error_result};
use super::expect::{Miss, expect, field, show};
use super::value::{Fault, Val, Vars};
use crate::place::{Place, TIMEOUT_MS};
use zlink_store::{LocationStore, RelocationStore};

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
        let result = match (step.get("open"), step.get("close")) {
            (Some(name), _) => self.open(step, name)?,
            (_, Some(name)) => {
                let name = self.vars.text(name)?;
                let store = self.named.get(&name).ok_or_else(|| format!("no store {name}"))?;
                store.close().await;
                Val::fields([("kind", Val::text("closed"))])
            }
            (None, None) => self.call(step, &self.vars.clone())?.await?,
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
        let verb = VERBS.iter().find(|(verb, _)| step.contains_key(*verb));
        let (_, relocation) = verb.ok_or_else(|| format!("no verb among {:?}", step.keys().collect::<Vec<_>>()))?;
        let name = match step.get("on") {
            Some(name) => vars.text(name)?,
            None => if *relocation { "relocation" } else { "location" }.to_owned(),
        };
        if !self.named.contains_key(&name) && matches!(name.as_str(), "location" | "relocation") {
            let options = self.place.options(if *relocation { "r" } else { "l" }, TIMEOUT_MS);
            let opened = options.and_then(|options| make(self.place, options, *relocation));
            self.keep(&name, opened.map_err(|error| error.to_string())?);
        }
        let store = self.named.get(&name).ok_or_else(|| format!("no store {name}"))?;
        call(step, store, vars, &self.versions)
    }

    fn keep(&mut self, name: &str, store: Store) {
        self.opened.push(store.clone());
        self.named.insert(name.to_owned(), store);
    }

    fn open(&mut self, step: &Map<String, Value>, name: &Value) -> Result<Val, Fault> {
        let relocation = step.get("store").is_some_and(|kind| kind == "relocation");
        let timeout = step.get("timeoutMs").map_or(Ok(30_000), |timeout| self.vars.number(timeout))?;
        let timeout = u64::try_from(timeout).map_err(|error| error.to_string())?;
        let options = match (step.get("exactPrefix"), step.get("prefix")) {
            (Some(exact), _) => Place::exact_options(&self.vars.text(exact)?, timeout),
            (None, Some(prefix)) => self.place.options(&self.vars.text(prefix)?, timeout),
            (None, None) => self.place.options(if relocation { "r" } else { "l" }, timeout),
        };
        match options.and_then(|options| make(self.place, options, relocation)) {
            Ok(store) => {
                let name = self.vars.text(name)?;
                self.keep(&name, store);
                Ok(Val::fields([("kind", Val::text("opened"))]))
            }
            Err(error) => Ok(error_result(&error)),
        }
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

fn make(place: &Place, options: zlink_store::StoreOptions, relocation: bool) -> Result<Store, zlink_store::Error> {
    Ok(if relocation {
        Store::Relocation(RelocationStore::open(place.url(), options)?)
    } else {
        Store::Location(LocationStore::open(place.url(), options)?)
    })
}

fn held(matched: Result<(), Miss>, result: &Val) -> Result<(), Fault> {
    matched.map_err(|miss| match miss {
        Miss::Mismatch(said) => format!("{said} (result: {})", show(result)),
        Miss::Fault(fault) => format!("the scenario is wrong: {fault}"),
    })
}
