// Joins what the parts measured (`target/bench/PART.json`), holds it against the goals and writes it down.
//   report.mjs node          a table of what that part measured just now
//   report.mjs all           every row of the goals, measured or not; the plots; report.json. Ends with 1 if a part or a row failed
//   report.mjs publish       the same, put into docs/performance.md between its markers; the plots, into that page and the README
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { costs, figure, GOALS, goalText, resultFile, verdict, writeResult } from './goals.mjs';
import { throughputPlot, waitsPlot } from './plots.mjs';

const PARTS = ['node', 'java', 'core'];
const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const MARKERS = ['<!-- figures: written by tests/bench/report.mjs -->', '<!-- end of figures -->'];
const PLOTS = {
  'throughput.svg': { draw: throughputPlot, about: 'Reads a second from Node.js, over operations in flight, against two clients' },
  'waits.svg': { draw: waitsPlot, about: 'How long another client waits for the server beside scans and blobs' },
};

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

/** The cells of each line of the goals, with those that were not measured if `whole`. */
function cells({ rows }, whole) {
  return [...GOALS].flatMap(([id, goal]) => {
    const result = rows[id];
    if (!result && !whole) return [];
    const { value, spread, word } = verdict(goal, result);
    const rival = result?.against ?? goal.rival;
    return {
      row: goal.row,
      figures: [
        goal.measured,
        figure(result?.ours, goal.unit),
        [figure(result?.rival, goal.unit), rival && `(${rival})`].filter(Boolean).join(' '),
        spread ? `${value} (${spread})` : value,
        goalText(goal),
        word,
      ],
      remarks: [result && costs(result), result?.remarks].filter(Boolean).join('; '),
    };
  });
}

const line = (cells) => `| ${cells.join(' | ')} |`;
const HEAD = ['measured', 'ours', 'rival', 'ratio (rounds)', 'goal', ''];
const RULE = '|---|---:|---:|---:|---|---|';

/** A Markdown table of the goals, with the lines that were not measured if `whole`. */
export const table = (result, whole) =>
  [line([...HEAD, 'remarks']), `${RULE}---|`, ...cells(result, whole).map(({ figures, remarks }) => line([...figures, remarks]))].join('\n');

/** The same as a reader of the page wants it: under the goals' own headings, and what is only remarked folded away. */
export function page(result, plots) {
  const all = cells(result, true);
  const lines = all.flatMap(({ row, figures }, i) => [...(row === all[i - 1]?.row ? [] : [line([`**${row}**`, '', '', '', '', ''])]), line(figures)]);
  const remarked = all.filter(({ remarks }) => remarks).map(({ figures: [measured, , rival], remarks }) => line([measured, rival.replace(/^[^(]*/, ''), remarks]));
  return [
    `${summary(result, true)}.`,
    ...plots.map((file) => `![${PLOTS[file].about}](bench/${file})`),
    [line(HEAD), RULE, ...lines].join('\n'),
    result.about.map((about) => `- ${about}`).join('\n'),
    `<details><summary>What an operation costs the processors, and remarks</summary>\n\n${[line(['measured', 'rival', '']), '|---|---|---|', ...remarked].join('\n')}\n\n</details>`,
  ].join('\n\n');
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
  return Object.entries(PLOTS).flatMap(([file, { draw }]) => {
    const data = result.plots[file.replace('.svg', '')];
    return data ? [[file, draw(data)]] : [];
  });
}

/** The README shows the plots alone. */
const shown = (plots) => plots.map((file) => `![${PLOTS[file].about}](docs/bench/${file})`).join('\n\n');

function publish(result) {
  const plots = plotsOf(result);
  mkdirSync(`${ROOT}docs/bench`, { recursive: true });
  for (const [file, svg] of plots) writeFileSync(`${ROOT}docs/bench/${file}`, svg);
  const files = plots.map(([file]) => file);
  for (const [name, section] of [
    ['docs/performance.md', page(result, files)],
    ['README.md', shown(files)],
  ]) {
    writeFileSync(`${ROOT}${name}`, replaced(readFileSync(`${ROOT}${name}`, 'utf8'), section));
  }
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
