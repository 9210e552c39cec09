// The report: goals are whole, every line is printed, and what it draws and puts into the page is well formed.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { GOALS, judge } from './goals.mjs';
import { throughputPlot, ticks, waitsPlot } from './plots.mjs';
import { join, page, replaced, summary, table } from './report.mjs';

const part = (rows, failed = []) => ({ part: 'node', about: ['a machine'], rows, plots: {}, failed });
const lines = (text) => text.split('\n').slice(2);

test('every line of the goals says what is measured, and how it is judged', () => {
  assert.ok(GOALS.size >= 55);
  for (const [id, { measured, unit, kind, direction, goal, rival }] of GOALS) {
    assert.match(id, /^(node|java|core)\//);
    assert.ok(measured && unit, id);
    assert.ok(['ratio', 'excess', 'figure'].includes(kind), id);
    assert.ok(['atLeast', 'atMost'].includes(direction), id);
    assert.ok(goal === null || goal >= 0, id);
    assert.equal(rival !== '', kind !== 'figure', id);
  }
});

test('every line is measured by its part', () => {
  const sources = {
    node: ['node/rows/reads.mjs', 'node/rows/writes.mjs', 'node/rows/blobs.mjs', 'node/rows/scans.mjs', 'node/rows/memory.mjs', 'node/rows/growth.mjs', 'node/rows/projects.mjs', 'node/rows/embedded.mjs'],
    java: ['java/Bench.java'],
    core: ['rust/src/bin/core.rs'],
  };
  for (const id of GOALS.keys()) {
    const [name, work] = id.split('/');
    const text = sources[name].map((file) => readFileSync(new URL(file, import.meta.url), 'utf8')).join('\n');
    assert.ok(text.includes(`${name}/${work}`), id);
  }
});

test('medians are judged, in the direction of the goal', () => {
  const figures = { ours: [30, 10, 20], rival: [10, 10, 10] };
  assert.deepEqual(judge({ kind: 'ratio', direction: 'atLeast', goal: 2 }, figures), { value: 2, least: 1, most: 3, met: true });
  assert.equal(judge({ kind: 'ratio', direction: 'atMost', goal: 1.9 }, figures).met, false);
  assert.equal(judge({ kind: 'excess', direction: 'atMost', goal: 3 }, figures).value, 10);
  assert.equal(judge({ kind: 'excess', direction: 'atMost', goal: 3 }, { ours: [1], rival: [2] }).value, 0);
  assert.equal(judge({ kind: 'ratio', direction: 'atLeast', goal: null }, figures).met, undefined);
});

test('what is not measured stands in the whole table, and in no other', () => {
  const [id] = GOALS.keys();
  const result = join([part({ [id]: { ours: [9, 9], rival: [1, 1], cpu: { ours: { client: 1 }, rival: { client: 2 } } } })]);
  assert.equal(lines(table(result, false)).length, 1);
  assert.match(table(result, false), /9\.00× .* met .*CPU µs: client 1\.00 against client 2\.00/);
  assert.equal(lines(table(result, true)).length, GOALS.size);
  assert.match(summary(result, true), /^1 goals met, 0 missed, \d+ lines not measured$/);
  assert.equal(summary(result, false), '1 goals met, 0 missed');
});

test('a figure without a goal of its own is refused, and what failed is kept', () => {
  assert.throws(() => join([part({ 'node/nothing': { ours: [1] } })]), /node\/nothing/);
  assert.deepEqual(join([part({}, ['read: broken'])]).failed, ['node: read: broken']);
});

test('plots hold all points, within the drawing', () => {
  // Each series has a sign of its own, and one more in the legend.
  const signs = (svg) => [0, 1, 2].map((which) => svg.split(`class="fill${which}"`).length - 1);
  const lines = throughputPlot({ title: 'a < b', inFlight: [1, 64], series: { ours: [1_000, 200_000], theirs: [900, 50_000] } });
  assert.deepEqual(signs(lines), [3, 3, 0]);
  assert.ok(lines.includes('a &lt; b') && !/NaN|undefined|Infinity/.test(lines));
  // What was too short to be told is no figure that a logarithm has.
  const bars = waitsPlot({ title: 't', unit: 'ms', beside: [{ name: 'idle', p99: 0, p999: 0.2, worst: 3 }] });
  assert.deepEqual(signs(bars), [2, 2, 2]);
  assert.ok(bars.includes('idle') && !/NaN|undefined|Infinity/.test(bars));
});

test('an axis goes from round figures to round figures', () => {
  assert.deepEqual(ticks(900, 12_000), [500, 1_000, 2_000, 5_000, 10_000, 20_000]);
  assert.deepEqual(ticks(0.1, 0.3), [0.1, 0.2, 0.5]);
});

test('the page shows every line under the heading of its goal, and the remarks apart', () => {
  const [[id, { row, measured }]] = GOALS;
  const shown = page(join([part({ [id]: { ours: [9], rival: [1], remarks: 'a remark' } })]), ['waits.svg']);
  for (const { measured } of GOALS.values()) assert.ok(shown.includes(`| ${measured} |`), measured);
  assert.equal(shown.split(`**${row}**`).length, 2);
  assert.ok(shown.includes('](bench/waits.svg)') && shown.includes('- node: a machine'));
  assert.ok(shown.indexOf(`| ${measured} | (`) > shown.indexOf('<details>') && shown.indexOf('a remark') > shown.indexOf('<details>'));
});

test('the pages have a place for the figures', () => {
  for (const name of ['docs/performance.md', 'README.md']) {
    const text = readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8');
    const once = replaced(text, 'figures');
    assert.equal(replaced(once, 'figures'), once);
  }
  assert.throws(() => replaced('no markers', ''), /markers/);
});
