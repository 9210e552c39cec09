// Log events of the native library.

export interface LogEvent {
  readonly level: 'error' | 'warn' | 'info' | 'debug' | 'trace';
  /** The part of the library that speaks. */
  readonly target: string;
  /** Never holds a password, a value's bytes, script text or an engine key. */
  readonly message: string;
}

const order = ['error', 'warn', 'info', 'debug', 'trace'] as const;

const listeners = new Map<(event: LogEvent) => void, LogEvent['level']>();

export function isLevel(level: unknown): level is LogEvent['level'] {
  return order.includes(level as LogEvent['level']);
}

/** Adds or removes a listener; gives back the most verbose level that is wanted now. */
export function listen(
  listener: (event: LogEvent) => void,
  level: LogEvent['level'] | undefined,
): LogEvent['level'] | undefined {
  if (level === undefined) listeners.delete(listener);
  else listeners.set(listener, level);
  return order.findLast((candidate) => [...listeners.values()].includes(candidate));
}

export function emit(event: LogEvent): void {
  for (const [listener, level] of listeners) {
    if (order.indexOf(event.level) > order.indexOf(level)) continue;
    try {
      listener(event);
    } catch (error) {
      // A listener's fault must not become an operation's.
      queueMicrotask(() => {
        throw error;
      });
    }
  }
}
