// The goals as data (`goals.json`), how a figure is judged by them, and how it is written.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const GOALS = new Map(JSON.parse(readFileSync(new URL('./goals.json', import.meta.url), 'utf8')).rows.map((row) => [row.id, row]));

const FOLDER = fileURLToPath(new URL('../../target/bench/', import.meta.url));

/** Where the figures of one part lie, and those of all of them. */
export const resultFile = (name) => `${FOLDER}${name}`;

export function writeResult(name, content) {
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(resultFile(name), typeof content === 'string' ? content : `${JSON.stringify(content, undefined, 1)}\n`);
}

export const median = (numbers) => quantile(numbers, 0.5);
export const quantile = (numbers, q) => [...numbers].sort((a, b) => a - b)[Math.min(numbers.length - 1, Math.floor(numbers.length * q))];

/** What is held against the goal: the value, and its smallest and largest in a round. */
const KINDS = {
  ratio: (ours, rival) => ours / rival,
  // Noise below the idle figure is no merit.
  excess: (ours, rival) => Math.max(0, ours - rival),
  figure: (ours) => ours,
};

/** `ours` and `rival` are the figures of the rounds, each round's pair measured one after the other. */
export function judge({ kind, direction, goal }, { ours, rival }) {
  const value = KINDS[kind](median(ours), rival && median(rival));
  const rounds = ours.map((figure, round) => KINDS[kind](figure, rival?.[round]));
  const met = goal === undefined || goal === null ? undefined : direction === 'atLeast' ? value >= goal : value <= goal;
  return { value, least: Math.min(...rounds), most: Math.max(...rounds), met };
}

const number = (value) => (value >= 100 ? Math.round(value).toLocaleString('en') : value.toFixed(2));
/** A figure itself stands in a column of its own already. */
const shown = { ratio: (value) => `${value.toFixed(2)}×`, excess: (value, unit) => `+${value.toFixed(2)} ${unit}`, figure: () => '' };

export const figure = (figures, unit) => (figures ? `${number(median(figures))} ${unit}` : '');

/** `≥ 3×`, `≤ +3 ms`, `≤ 620 B`; nothing without a goal. */
export function goalText({ kind, direction, goal, unit }) {
  if (goal === undefined || goal === null) return '';
  const amount = { ratio: `${goal}×`, excess: `+${goal} ${unit}`, figure: `${goal} ${unit}` }[kind];
  return `${direction === 'atLeast' ? '≥' : '≤'} ${amount}`;
}

export function verdict(row, result) {
  if (!result) return { value: '', spread: '', word: 'not measured' };
  const { value, least, most, met } = judge(row, result);
  return {
    value: shown[row.kind](value, row.unit),
    spread: result.ours.length > 1 && row.kind !== 'figure' ? `${number(least)}–${number(most)}` : '',
    word: met === undefined ? '' : met ? 'met' : 'MISSED',
    ratio: value,
    met,
  };
}

/** What an operation costs the processors, of the sides that told it. */
export function costs({ cpu }) {
  if (!cpu) return '';
  const side = ({ server, client }) =>
    [server !== undefined && `server ${number(server)}`, client !== undefined && `client ${number(client)}`].filter(Boolean).join(' + ');
  return `CPU µs: ${side(cpu.ours)} against ${side(cpu.rival)}`;
}
