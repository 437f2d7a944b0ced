import type { Db } from '../../../storage/database.ts'
import {
  hasDueTemplates,
  lockDueTemplates,
  type SandboxTemplate,
  type TemplateChange,
  writeSandboxTemplate,
} from '../../../storage/sandbox/templates.ts'
import { enqueueUpdates } from '../../../storage/sandbox/updates.ts'
import { later, within } from './call.ts'
import { findingIn } from './template-checks.ts'
import { ARCHIVE_DAYS } from './templates.ts'
import { categoryUpdate, templateUpdate } from './updates.ts'

export type Decision = 'approve' | 'reject' | 'pause' | 'disable' | 'category'

/** Reasons of the provider's own list; any other text is told as the reviewer's words. */
const REASONS = ['ABUSIVE_CONTENT', 'INVALID_FORMAT', 'PROMOTIONAL', 'TAG_CONTENT_MISMATCH', 'SCAM', 'NONE']

/** `recommendation`: what to do about a rejection. */
export type Grounds = {
  reason?: string | undefined
  recommendation?: string | undefined
  category?: string | undefined
}

/** Decides on a locked template, whatever its status, and tells it. */
export const review = async (
  tx: Db,
  template: SandboxTemplate,
  decision: Decision,
  {
    reason = 'INVALID_FORMAT',
    recommendation = 'Edit the template and submit it again.',
    category,
  }: Grounds = {},
): Promise<SandboxTemplate> => {
  const write = (change: TemplateChange) =>
    writeSandboxTemplate(tx, template, { review_at: null, archived_at: null, kept_status: null, ...change })
  switch (decision) {
    case 'approve':
      return await told(tx, await write({ status: 'APPROVED', rejected_reason: 'NONE' }), 'APPROVED')
    case 'pause':
      return await told(tx, await write({ status: 'PAUSED' }), 'PAUSED')
    case 'disable':
      return await told(tx, await write({ status: 'DISABLED' }), 'DISABLED')
    case 'reject': {
      const known = REASONS.includes(reason)
      const rejected = await write({ status: 'REJECTED', rejected_reason: known ? reason : 'INVALID_FORMAT' })
      return await told(tx, rejected, 'REJECTED', {
        reason: known ? `The template was rejected: ${reason}.` : reason,
        recommendation,
      })
    }
    case 'category': {
      const changed = await writeSandboxTemplate(tx, template, {
        category: category!,
        previous_category: template.category,
      })
      await enqueueUpdates(tx, [categoryUpdate(changed, template.category)])
      return changed
    }
  }
}

const told = async (
  tx: Db,
  template: SandboxTemplate,
  event: string,
  rejection?: { reason: string; recommendation: string },
): Promise<SandboxTemplate> => {
  await enqueueUpdates(tx, [templateUpdate(template, event, rejection)])
  return template
}

const decide = async (tx: Db, template: SandboxTemplate): Promise<void> => {
  const finding = findingIn(template.components, template.parameter_format === 'NAMED')
  await (finding ? review(tx, template, 'reject', finding) : review(tx, template, 'approve'))
}

/**
 * Approves what has waited long enough, or rejects what a reviewer would, and deletes for good what was
 * archived too long ago.
 */
export const reviewDue = async (db: Db, now: string): Promise<void> => {
  const gone = later(now, -ARCHIVE_DAYS * 86_400_000)
  if (!(await hasDueTemplates(db, now, gone))) return
  await within(db, async (tx) => {
    for (const template of await lockDueTemplates(tx, now, gone)) {
      if (template.archived_at === null) await decide(tx, template)
      else
        await told(
          tx,
          await writeSandboxTemplate(tx, template, {
            status: 'DELETED',
            deleted_at: now,
            review_at: null,
            archived_at: null,
          }),
          'DELETED',
        )
    }
  })
}
