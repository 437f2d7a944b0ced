import { z } from 'zod'
import type { ConfirmVerb } from './operation.ts'

/** What becomes of a call of an AI agent: it runs, a person is asked first, or it is refused. */
export const decisions = ['allow', 'ask', 'deny'] as const
export type Decision = (typeof decisions)[number]

/** Days of the week as they are written in `--hours`. */
export const weekdays = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const
export type Weekday = (typeof weekdays)[number]

/** Conditions of `allow`: where one is not met, a person is asked. */
export type PolicyBounds = {
  /** Only replies inside an open reply window. */
  window_open?: true
  /** Only conversations that are assigned to the staff member of the key. */
  assigned?: true
  /** Only these templates, by name. */
  templates?: string[]
  /** At most so many messages in any hour of real time. */
  sends_per_hour?: number
  /** Only at these times in the time zone of the workspace, `HH:MM`; `to` is exclusive. */
  hours?: { days: Weekday[]; from: string; to: string }
}

/** What the key of an AI agent may do by itself. What it does not name has its default (`decide`). */
export type KeyPolicy = {
  verbs: Partial<Record<ConfirmVerb, Decision>>
  /** By the name of the operation; these come before the verbs. */
  operations: Record<string, Decision>
  bounds: PolicyBounds
  /**
   * Who confirms what is `ask`: a `person` with a key of their own, or the person behind the `client`, whose
   * answer the client reports.
   */
  approval: 'person' | 'client'
  /** How long a person may take, in seconds of business time; 24 hours when absent. */
  expires_after?: number
  /** Most requests that wait for a decision; 20 when absent. */
  open_approvals?: number
}

export const defaultPolicy: KeyPolicy = { verbs: {}, operations: {}, bounds: {}, approval: 'person' }

/** The policy of a key, as clients read it. */
export const Policy = z
  .object({
    verbs: z
      .record(z.string(), z.enum(decisions))
      .describe('Decisions for operations with these confirm verbs; `ask` for those not named.'),
    operations: z
      .record(z.string(), z.enum(decisions))
      .describe('Decisions for single operations; they override those for verbs.'),
    bounds: z
      .object({
        window_open: z.literal(true).optional().describe('Only inside an open reply window.'),
        assigned: z.literal(true).optional().describe('Only conversations assigned to its staff member.'),
        templates: z.array(z.string()).optional().describe('Only templates with these names.'),
        sends_per_hour: z.int().optional().describe('Most messages in any hour.'),
        hours: z
          .object({
            days: z.array(z.enum(weekdays)).describe('Days of the week.'),
            from: z.string().describe('First minute, `HH:MM`.'),
            to: z.string().describe('End, `HH:MM`, exclusive.'),
          })
          .optional()
          .describe("Only at these times, in the workspace's time zone."),
      })
      .describe('Conditions of `allow`; outside them a person is asked.'),
    approval: z
      .enum(['person', 'client'])
      .describe("`person`: approval with a person's key. `client`: confirmation in the MCP client suffices."),
    expires_after: z.int().optional().describe('Seconds until the request expires; 24 hours when absent.'),
    open_approvals: z.int().optional().describe('Most requests that wait for a decision; 20 when absent.'),
  })
  .meta({ id: 'KeyPolicy' })
