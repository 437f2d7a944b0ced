import { z } from 'zod'
import { mark } from './marks.ts'
import {
  bulkResult,
  ContactName,
  EXPENSIVE_READ,
  Id,
  IdInput,
  idOf,
  list,
  page,
  Timestamp,
} from './fields.ts'
import { defineOperation } from './operation.ts'

const since = '2026-10-01'

/** Records up to which a change by filter is made at once, as with ids; beyond, by a job. */
export const MAX_AT_ONCE = 500

/** How much of a plan may have ceased to match its filter, in percent. */
export const MAX_PLAN_CHANGE_PERCENT = 10

const jobStates = ['running', 'paused', 'done', 'failed', 'cancelled'] as const

const JobFailure = z.object({
  id: Id.describe('Id of the contact or conversation.'),
  code: z.string().describe('Error code, such as `not_found`.'),
  message: z.string().describe('What is wrong.'),
})

export const Job = z
  .object({
    id: idOf('job').describe('Job id.'),
    state: z
      .enum(jobStates)
      .describe(
        '`running`, `paused`; `done`: every record was tried; `failed`: it stopped, with the reason in ' +
          '`problem`; `cancelled`: it changes nothing more.',
      ),
    operation: z.string().describe('The operation that it runs on its contacts or conversations.'),
    input: mark(z.record(z.string(), z.unknown()), { phone: 'job' }).describe(
      'The input of its calls, without ids of records. Values of fields are shown to managers who see phones.',
    ),
    total: z.int().describe('Records that it is for.'),
    done: z.int().describe('Records that it has come to.'),
    changed: z.int().describe('Records that changed; the others already had the requested state.'),
    failed: z.int().describe('Records that failed.'),
    per_second: z.number().nullable().describe('Records a second while it runs; null before the first.'),
    seconds_left: z.int().nullable().describe('Estimated seconds left; null if it is not running.'),
    problem: z
      .object({
        code: z.string().describe('Error code.'),
        detail: z.string().describe('What is wrong.'),
      })
      .nullable()
      .describe('Why it stopped.'),
    created_by: z
      .object({
        id: Id.describe('Staff id.'),
        name: z.string().nullable().describe('Name; null if the staff member was deleted.'),
      })
      .describe('Who began it.'),
    created_at: Timestamp.describe('When it began.'),
    finished_at: Timestamp.nullable().describe('When it ended.'),
    undo_of_job_id: Id.nullable().describe('The job that it undoes.'),
    undone_by_job_id: Id.nullable().describe('The job that undoes it.'),
  })
  .meta({ id: 'Job' })

/** Ids of the records that a change is for. */
export const targetIds = (noun: 'contact' | 'conversation') =>
  z
    .array(mark(IdInput, { idOf: noun }))
    .min(1)
    .max(MAX_AT_ONCE)
    .describe(`1 to ${MAX_AT_ONCE} ${noun} ids; duplicates count once.`)

/** The input fields that say for which contacts a change is. */
export const target = {
  contact_ids: targetIds('contact').optional(),
  filter: z
    .record(z.string(), z.unknown())
    .optional()
    .describe('All contacts that match this filter, as `crm_search_contacts` takes it. `{}` needs `all`.'),
  saved_filter_id: mark(IdInput, { idOf: 'saved_filter' })
    .optional()
    .describe('All contacts that match this saved filter.'),
  all: z.literal(true).optional().describe('Required with an empty filter, which matches every contact.'),
}

/** The ways to say for which contacts a change is. */
export const targetAlternatives = [
  { needs: ['contact_ids'] },
  { needs: ['filter'], takes: ['all'] },
  { needs: ['saved_filter_id'] },
] as const

/** What is said of the plan of a change by a filter. */
export const KEPT_PLAN =
  'With `Api-Plan: show` (MCP: `plan`) it also returns `plan.token`: the same call, sent with that as ' +
  '`Api-Plan` within an hour, is for exactly those records, or is a 409 `plan_changed` if more than ' +
  `${MAX_PLAN_CHANGE_PERCENT} percent of them no longer match.`

/** What is said of operations that take a filter in place of ids. */
export const BY_FILTER =
  `Instead of ids it takes a filter, for which the key needs \`mcp:read\`. If more than ${MAX_AT_ONCE} ` +
  'records match, it returns 202 with a `job` that continues in the background (`jobs_get`). A dry ' +
  `run returns how many would change, and samples. ${KEPT_PLAN} By filter it is ${EXPENSIVE_READ}`

/** What changes of many records answer, of whichever kind. */
export const recordsResult = {
  ...bulkResult,
  job: Job.optional().describe('Present with 202: the change continues in this job.'),
  would_change: z.int().optional().describe('Only in a dry run by filter: how many would change.'),
  unchanged: z.int().optional().describe('Only in a dry run by filter: how many would not change.'),
}

/** The output of a change of many contacts. */
export const targetResult = {
  ...recordsResult,
  samples: z
    .array(
      z.object({
        contact_id: idOf('contact').describe('Contact id.'),
        name: ContactName,
      }),
    )
    .optional()
    .describe('Only in a dry run by filter: up to 20 of the contacts.'),
  would_create: z
    .array(
      z.object({
        name: z.string().describe('Name.'),
        nearest: z.string().nullable().describe('The most similar one that exists.'),
      }),
    )
    .optional()
    .describe('Only in a dry run by filter: tags that do not exist yet.'),
}

export const jobExample: z.input<typeof Job> = {
  id: '1',
  state: 'done',
  operation: 'crm_tag_contacts',
  input: { tags: [2] },
  total: 2000,
  done: 2000,
  changed: 1990,
  failed: 1,
  per_second: 2500,
  seconds_left: null,
  problem: null,
  created_by: { id: '1', name: 'Olivia Owner' },
  created_at: '2026-10-01T09:30:00.000Z',
  finished_at: '2026-10-01T09:30:01.000Z',
  undo_of_job_id: null,
  undone_by_job_id: null,
}
const running = {
  ...jobExample,
  state: 'running' as const,
  done: 500,
  changed: 498,
  failed: 0,
  seconds_left: 1,
  finished_at: null,
}
const paused = { ...running, id: '2', operation: 'crm_untag_contacts', seconds_left: null }

const JobId = idOf('job').describe('Job id.')

export const listJobs = defineOperation({
  name: 'jobs_list',
  cli: 'jobs list',
  routes: ['GET /v1/jobs'],
  since,
  stability: 'beta',
  summary: 'List bulk jobs, newest first',
  description:
    'Jobs change many contacts or conversations. Owners, admins and managers see all; others their ' +
    'own. Ended jobs are kept for 30 days.',
  words: 'background jobs, running tasks, bulk operations, scheduled broadcasts',
  scope: 'mcp:read',
  view: [
    { path: 'id' },
    { path: 'state' },
    { path: 'operation', whole: true },
    { path: 'done' },
    { path: 'total' },
    { path: 'changed' },
    { path: 'failed' },
    { path: 'created_by.name', title: 'by' },
    { path: 'created_at', title: 'began' },
    { path: 'seconds_left', title: 'seconds left' },
  ],
  slim: ['id', 'state', 'operation', 'total', 'done', 'changed', 'failed', 'seconds_left', 'problem.detail'],
  input: z.object({ state: z.enum(jobStates).optional().describe('Only in this state.'), ...page }),
  output: z.object(list(Job)),
  errors: [],
  examples: [{ title: 'All jobs', input: {}, output: { data: [jobExample], next_cursor: null } }],
})

export const getJob = defineOperation({
  name: 'jobs_get',
  cli: 'jobs get',
  routes: ['GET /v1/jobs/{job_id}'],
  since,
  stability: 'beta',
  summary: 'Show a job and its progress',
  words: 'job status, progress of a bulk change, is it done, finished, percentage, task',
  scope: 'mcp:read',
  input: z.object({ job_id: JobId }),
  output: z.object(Job.shape),
  errors: ['not_found'],
  examples: [{ title: 'One that is done', input: { job_id: '1' }, output: jobExample }],
})

export const listJobFailures = defineOperation({
  name: 'jobs_list_failures',
  cli: 'jobs failures',
  routes: ['GET /v1/jobs/{job_id}/failures'],
  since,
  stability: 'beta',
  summary: 'List the records that a job failed to change, in the order of the job',
  description: 'For bulk messages: the contacts that got none.',
  words: 'which contacts failed in a job, errors of a bulk change, failed rows, skipped',
  scope: 'mcp:read',
  input: z.object({ job_id: JobId, ...page }),
  output: z.object(list(JobFailure)),
  errors: ['not_found'],
  examples: [
    {
      title: 'One contact was deleted meanwhile',
      input: { job_id: '1' },
      output: {
        data: [{ id: '43', code: 'not_found', message: 'No contact with the id 43.' }],
        next_cursor: null,
      },
    },
  ],
})

const change = {
  since,
  stability: 'beta',
  scope: 'crm:write',
  dryRun: true,
  idempotency: 'optional',
  repeatable: true,
  input: z.object({ job_id: JobId }),
  output: z.object({ job: Job.describe('The job.') }),
} as const

const WHOSE = 'For its creator, owners, admins and managers.'

export const pauseJob = defineOperation({
  ...change,
  name: 'jobs_pause',
  cli: 'jobs pause',
  routes: ['POST /v1/jobs/{job_id}/pause'],
  summary: 'Pause a job',
  description: `${WHOSE} It takes effect before the response. Pausing a paused job changes nothing.`,
  words: 'pause a job, stop a running broadcast, bulk send, campaign, hold, suspend',
  effect: 'adds',
  emits: [] as const,
  errors: ['not_found', 'conflict'],
  examples: [{ title: 'Pause', input: { job_id: '2' }, output: { job: { ...paused, state: 'paused' } } }],
})

export const resumeJob = defineOperation({
  ...change,
  name: 'jobs_resume',
  cli: 'jobs resume',
  routes: ['POST /v1/jobs/{job_id}/resume'],
  summary: 'Continue a paused or failed job where it stopped',
  description: WHOSE,
  // What somebody stopped goes on, with the rights of who began it.
  asks: true,
  words: 'continue a paused job, retry a failed job, resume a broadcast, go on, restart',
  effect: 'sends',
  emits: [] as const,
  errors: ['not_found', 'conflict'],
  examples: [{ title: 'Resume', input: { job_id: '2' }, output: { job: { ...paused, state: 'running' } } }],
})

export const cancelJob = defineOperation({
  ...change,
  name: 'jobs_cancel',
  cli: 'jobs cancel',
  routes: ['POST /v1/jobs/{job_id}/cancel'],
  summary: 'Cancel a job; what it has changed stays',
  description: `${WHOSE} \`jobs_undo\` reverts what it has changed, except sent messages.`,
  // It ends for good what somebody began, where a pause would do.
  asks: true,
  words:
    'cancel a scheduled broadcast, abort a campaign, stop a running broadcast, bulk send, kill a job, ' +
    'call off',
  effect: 'replaces',
  emits: ['job.finished/1'] as const,
  errors: ['not_found', 'conflict'],
  examples: [
    {
      title: 'Cancel',
      input: { job_id: '2' },
      output: { job: { ...paused, state: 'cancelled', finished_at: jobExample.finished_at } },
    },
  ],
})

export const undoJob = defineOperation({
  ...change,
  name: 'jobs_undo',
  cli: 'jobs undo',
  routes: [{ route: 'POST /v1/jobs/{job_id}/undo', status: 202 }],
  summary: 'Undo what a job changed, by another job',
  description:
    `${WHOSE} Within 7 days after it ended. Tags and memberships that it added are removed and those ` +
    'that it removed are added, only for contacts that it changed; tags that it created stay. ' +
    'Deletions cannot be undone (409). Conversations get their previous assignee back, or are ' +
    'reopened, unless they were changed since.',
  // What somebody did to many is taken back.
  asks: true,
  words: 'undo a bulk change, revert, roll back tagging, take back, restore',
  effect: 'replaces',
  emits: [] as const,
  output: z.object({
    job: Job.extend({ id: idOf('job').nullable().describe('Job id; null in a dry run.') }).describe(
      'The new job.',
    ),
  }),
  errors: ['not_found', 'conflict'],
  examples: [
    {
      title: 'Undo',
      input: { job_id: '1' },
      output: {
        job: {
          ...running,
          id: '3',
          operation: 'crm_untag_contacts',
          input: {},
          total: 1990,
          undo_of_job_id: '1',
        },
      },
    },
  ],
})
