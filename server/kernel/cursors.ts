import type { Reason } from '../../catalog/reasons.ts'
import { hash } from 'node:crypto'
import { type Actor, type Cursors } from './context.ts'
import { Problem } from './problem.ts'
import { CURSOR_LIFETIME_MS } from '../secret.ts'
import type { Sealer } from '../sealer.ts'

/** JSON with sorted keys: equal values give equal text. */
export const canonicalJson = (value: unknown): string =>
  JSON.stringify(value, (_, v: unknown) =>
    v !== null && typeof v === 'object' && !Array.isArray(v)
      ? Object.fromEntries(Object.entries(v).sort(([a], [b]) => (a < b ? -1 : 1)))
      : v,
  )

const invalidCursor = (reason: Reason, detail: string, fix: string): Problem =>
  new Problem('invalid_input', detail, {
    reason,
    errors: [{ pointer: '#/cursor', code: reason, detail, fix }],
  })

/**
 * Cursors of one call: sealed, good for 24 hours, and only for this operation, key owner and these filters
 * (`limit` may change).
 */
export const createCursors = (
  sealer: Sealer,
  actor: Actor,
  operation: string,
  input: Record<string, unknown>,
  now: string,
): Cursors => {
  const binding = (): string => {
    const { cursor: _cursor, limit: _limit, ...filters } = input
    const digest = hash('sha256', canonicalJson(filters), 'base64')
    return `${actor.workspace.id} ${actor.staff.id} ${operation} ${digest}`
  }
  return {
    open: (cursor) => {
      if (cursor === undefined) return null
      const text = sealer.open(cursor, binding())
      if (text === undefined) {
        throw invalidCursor(
          'cursor_invalid',
          "The cursor does not belong to this list, these filters and this key's owner.",
          'Pass next_cursor unchanged and with the same filters, or omit cursor to start again.',
        )
      }
      const [madeAt, ...position] = JSON.parse(text) as [number, ...(string | number | boolean | null)[]]
      if (Date.parse(now) - madeAt > CURSOR_LIFETIME_MS) {
        throw invalidCursor(
          'cursor_expired',
          'The cursor is older than 24 hours.',
          'Omit cursor to start again.',
        )
      }
      return position
    },
    seal: (position) => sealer.seal(JSON.stringify([Date.parse(now), ...position]), binding()),
  }
}
