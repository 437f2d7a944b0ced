import { usageError } from './error.ts'

/** What `--since` says: the present, an event, or a duration in milliseconds. */
export type Since = 'now' | { readonly after: string } | { readonly agoMs: number }

const UNIT_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Farther back the server may have no year for the time; no event is that old. */
const MAX_DAYS = 36_500

export const parseSince = (text: string): Since => {
  if (text === 'now') return 'now'
  if (/^evt_\w+$/.test(text)) return { after: text }
  const [, n, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  if (n !== undefined) {
    const agoMs = Number(n) * UNIT_MS[unit!]!
    if (agoMs <= MAX_DAYS * UNIT_MS['d']!) return { agoMs }
    throw usageError(
      `--since is at most ${MAX_DAYS} days, not "${text}".`,
      '--since',
      'For example --since 7d.',
    )
  }
  throw usageError(
    `--since must be now, the id of an event or a duration, not "${text}".`,
    '--since',
    'For example --since 1h: s, m, h or d.',
  )
}
