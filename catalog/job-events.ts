import { z } from 'zod'
import { defineEventType } from './event-type.ts'
import { Id } from './fields.ts'

export const jobEvents = {
  'job.finished/1': defineEventType(
    'A job, which changes many contacts or conversations, ended: it came to all of them, failed or was cancelled.',
    z.object({
      job: z
        .object({
          id: Id.describe('Job id.'),
          state: z.string().describe('`done`, `failed` or `cancelled`.'),
          operation: z.string().describe('The operation that it made.'),
          total: z.int().describe('Records that it was for.'),
          done: z.int().describe('Records that it came to.'),
          changed: z.int().describe('Records that changed.'),
          failed: z.int().describe('Records that failed.'),
          undo_of_job_id: Id.nullable().describe('The job that it undid.'),
        })
        .describe('The job.'),
    }),
    {
      job: {
        id: '1',
        state: 'done',
        operation: 'crm_tag_contacts',
        total: 2000,
        done: 2000,
        changed: 1990,
        failed: 1,
        undo_of_job_id: null,
      },
    },
  ),
} as const
