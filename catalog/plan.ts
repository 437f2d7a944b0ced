import { z } from 'zod'
import { mark } from './marks.ts'
import { untrusted } from './text.ts'

const Fields = mark(z.record(z.string(), z.unknown()), { holds: { kind: 'record', by: 'kind' } }).nullable()

/** One record that a change touches, as its reader may see it: the fields that differ. */
const PlannedRecord = z.object({
  kind: z.string().describe('Kind of the record, such as `contact`.'),
  id: z.string().nullable().describe('Its id; null for one that the change would create.'),
  before: Fields.describe(
    'The fields that would differ, before the change; null: the record would be created.',
  ),
  after: Fields.describe('The same fields after the change; null: the record would be deleted.'),
})

/** What a change would do to the records that it touches. */
export const Plan = z
  .object({
    token: z
      .string()
      .describe('Send it as `Api-Plan` with the change: it then does exactly this, or is refused.'),
    records: z.array(PlannedRecord).describe('The records that would change, at most 100.'),
    more_records: z.int().describe('How many further records the change touches.'),
    summary: untrusted(
      z
        .array(z.string())
        .optional()
        .describe(
          'The change in words, a line each, as for an approver: whom it concerns, the text, how many. Needs ' +
            '`mcp:read`.',
        ),
    ),
  })
  .describe('What would change; with `Api-Plan: show` on a dry run.')

export type Plan = z.infer<typeof Plan>
