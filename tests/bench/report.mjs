// Joins what the parts measured (`target/bench/PART.json`), holds it against the goals and writes it down.
//   report.mjs node          a table of what that part measured just now
//   report.mjs all           every row of the goals, measured or not; the plots; report.json. Ends with 1 if a part or a row failed
//   report.mjs publish       the same, put into docs/performance.md between its markers, and the plots beside it
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { costs, figure, GOALS, goalText, resultFile, verdict, writeResult } from './goals.mjs';
import { throughputPlot, waitsPlot } from './plots.mjs';

const PARTS = ['node', 'java', 'core'];
const DOCS = fileURLToPath(new URL('../../docs/', import.meta.url));
const MARKERS = ['<!-- figures: written by tests/bench/report.mjs -->', '<!-- end of figures -->'];
const PLOTS = { 'throughput.svg': throughputPlot, 'waits.svg': waitsPlot };

/** One result of all parts: `about` lines, `rows` by id, `plots`, and what failed. */
export function join(parts) {
  const all = { about: [], rows: {}, plots: {}, failed: [] };
  for (const { part, about, rows, plots, failed } of parts) {
    all.about.push(...about.map((line) => `${part}: ${line}`));
    Object.assign(all.rows, rows);
    Object.assign(all.plots, plots);
    all.failed.push(...failed.map((what) => `${part}: ${what}`));
  }
  const strangers = Object.keys(all.rows).filter((id) => !GOALS.has(id));
  if (strangers.length > 0) throw new Error(`measured, but no row of tests/bench/goals.json: ${strangers.join(', ')}`);
  return all;
}

/** A Markdown table of the goals, with the rows that were not measured if `whole`. */
export function table({ rows }, whole) {
  const lines = ['| measured | ours | rival | ratio (rounds) | goal | | remarks |', '|---|---:|---:|---:|---|---|---|'];
  for (const [id, goal] of GOALS) {
    const result = rows[id];
    if (!result && !whole) continue;
    const { value, spread, word } = verdict(goal, result);
    const rival = result?.against ?? goal.rival;
    const cells = [
      goal.measured,
      figure(result?.ours, goal.unit),
      [figure(result?.rival, goal.unit), rival && `(${rival})`].filter(Boolean).join(' '),
      spread ? `${value} (${spread})` : value,
      goalText(goal),
      word,
      [result && costs(result), result?.remarks].filter(Boolean).join('; '),
    ];
    lines.push(`| ${cells.join(' | ')} |`);
  }
  return lines.join('\n');
}

export function summary({ rows }, whole) {
  const counts = { met: 0, MISSED: 0, 'not measured': 0 };
  for (const [id, goal] of GOALS) {
    if (!rows[id] && !whole) continue;
    const { word } = verdict(goal, rows[id]);
    if (word in counts) counts[word]++;
  }
  const unmeasured = whole ? `, ${counts['not measured']} lines not measured` : '';
  return `${counts.met} goals met, ${counts.MISSED} missed${unmeasured}`;
}

/** The page with what lies between the markers replaced. */
export function replaced(page, section) {
  const [from, to] = MARKERS.map((marker) => page.indexOf(marker));
  if (from < 0 || to < from) throw new Error(`the page has no markers ${MARKERS.join(' … ')}`);
  return `${page.slice(0, from + MARKERS[0].length)}\n${section}\n${page.slice(to)}`;
}

const read = (part) => (existsSync(resultFile(`${part}.json`)) ? JSON.parse(readFileSync(resultFile(`${part}.json`), 'utf8')) : undefined);

function plotsOf(result) {
  return Object.entries(PLOTS).flatMap(([file, draw]) => {
    const data = result.plots[file.replace('.svg', '')];
    return data ? [[file, draw(data)]] : [];
  });
}

function publish(result) {
  const plots = plotsOf(result);
  mkdirSync(`${DOCS}bench`, { recursive: true });
  for (const [file, svg] of plots) writeFileSync(`${DOCS}bench/${file}`, svg);
  const section = [
    `${summary(result, true)}.\n`,
    result.about.map((line) => `- ${line}`).join('\n'),
    '',
    table(result, true),
    ...plots.map(([file]) => `\n![${file.replace('.svg', '')}](bench/${file})`),
  ].join('\n');
  const page = `${DOCS}performance.md`;
  writeFileSync(page, replaced(readFileSync(page, 'utf8'), section));
}

function main(what) {
  if (!['all', 'publish', ...PARTS].includes(what)) {
    console.error(`usage: report.mjs all | publish | ${PARTS.join(' | ')}`);
    return 2;
  }
  const whole = !PARTS.includes(what);
  const parts = (whole ? PARTS : [what]).map((part) => [part, read(part)]);
  const missing = parts.filter(([, result]) => !result).map(([part]) => part);
  const result = join(parts.flatMap(([, result]) => result ?? []));
  result.failed.push(...missing.map((part) => `${part}: no results`));
  console.log(`\n${result.about.join('\n')}\n\n${table(result, whole)}\n\n${summary(result, whole)}`);
  for (const failure of result.failed) console.log(`failed: ${failure}`);
  if (whole) {
    writeResult('report.json', { ...result, judged: Object.fromEntries([...GOALS].map(([id, goal]) => [id, { ...goal, ...verdict(goal, result.rows[id]) }])) });
    writeResult('report.md', `${table(result, true)}\n`);
    for (const [file, svg] of plotsOf(result)) writeResult(file, svg);
  }
  if (what === 'publish') publish(result);
  return result.failed.length > 0 ? 1 : 0;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = main(process.argv[2]);
