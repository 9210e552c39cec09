//! Both sides in turn (A B A B): operations per second by round, and what an operation costs both processors.

use std::error::Error;
use std::fs;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, try_join_all};

use crate::now;
use crate::rig::Rig;

/// Whatever stops a benchmark.
pub type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// One operation, by lane and by its number in the lane.
pub type Work = Arc<dyn Fn(usize, usize) -> BoxFuture<'static, Outcome<()>> + Send + Sync>;

/// What is done over and over.
pub fn work<F>(operation: impl Fn(usize, usize) -> F + Send + Sync + 'static) -> Work
where
    F: Future<Output = Outcome<()>> + Send + 'static,
{
    Arc::new(move |lane, i| Box::pin(operation(lane, i)))
}

/// How many rounds, and how long one is. `BENCH_ROUNDS` and `BENCH_ROUND_MS` make it shorter or longer.
#[derive(Debug, Clone, Copy)]
pub struct Rounds {
    /// How often each side has its turn.
    pub count: usize,
    /// How long a turn is.
    pub each: Duration,
}

impl Rounds {
    /// As the environment says.
    ///
    /// # Errors
    /// If it says something that is no number.
    pub fn wanted() -> Outcome<Self> {
        let number = |name: &str, usual: u64| std::env::var(name).map_or(Ok(usual), |text| text.parse());
        let count = usize::try_from(number("BENCH_ROUNDS", 3)?)?;
        Ok(Self { count: count.max(1), each: Duration::from_millis(number("BENCH_ROUND_MS", 1_500)?) })
    }
}

/// The figures of one side.
#[derive(Debug, Default, Clone)]
pub struct Side {
    /// Operations per second, by round.
    pub per_second: Vec<f64>,
    /// Microseconds of the server's CPU per operation, by round.
    pub server_us: Vec<f64>,
    /// Microseconds of this process' CPU per operation, by round.
    pub client_us: Vec<f64>,
}

/// Runs the sides in turn, `in_flight` lanes each, after a warm-up.
///
/// # Errors
/// The first operation that failed.
pub async fn row<const N: usize>(sides: [Work; N], in_flight: usize, rounds: Rounds, rig: &Rig) -> Outcome<[Side; N]> {
    for side in &sides {
        turn(side, in_flight, rounds.each / 3).await?;
    }
    let mut results = std::array::from_fn(|_| Side::default());
    for _ in 0..rounds.count {
        for (side, result) in sides.iter().zip(&mut results) {
            let (server, client) = (rig.server_cpu()?, client_cpu()?);
            let (operations, seconds) = turn(side, in_flight, rounds.each).await?;
            result.per_second.push(operations / seconds);
            result.client_us.push((client_cpu()? - client) * 1e6 / operations);
            result.server_us.push((rig.server_cpu()? - server) * 1e6 / operations);
        }
    }
    Ok(results)
}

/// Operations done, and the seconds that they took.
async fn turn(side: &Work, in_flight: usize, lasts: Duration) -> Outcome<(f64, f64)> {
    let began = now();
    let lane = |lane: usize| {
        let side = Arc::clone(side);
        tokio::spawn(async move {
            let mut done: u32 = 0;
            while began.elapsed() < lasts {
                side(lane, usize::try_from(done)?).await?;
                done += 1;
            }
            Outcome::Ok(done)
        })
    };
    let mut operations = 0.0;
    for done in try_join_all((0..in_flight).map(lane)).await? {
        operations += f64::from(done?);
    }
    Ok((operations, began.elapsed().as_secs_f64()))
}

/// Seconds of CPU that this process used so far, as Linux counts them: in hundredths.
fn client_cpu() -> Outcome<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let behind_the_name = stat.rsplit_once(')').ok_or("/proc/self/stat has another form")?.1;
    let mut ticks = 0.0;
    for field in behind_the_name.split_whitespace().skip(11).take(2) {
        ticks += field.parse::<f64>()?;
    }
    Ok(ticks / 100.0)
}
