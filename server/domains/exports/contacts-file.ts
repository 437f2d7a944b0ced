import { createContactLines, hasTruncatedValue } from '../../../catalog/contacts/export-lines.ts'
import { findExportBatch, listWholeContacts } from '../../../storage/contacts/exports.ts'
import { listParts, type RunningContactsExport } from '../../../storage/work/exports.ts'
import { findActor } from '../bulk-jobs/run.ts'
import { getTimelineScope } from '../contacts/timeline.ts'
import { showContact } from '../contacts/view.ts'
import type { App } from '../../app.ts'
import type { Actor } from '../../kernel/context.ts'
import { Problem } from '../../kernel/problem.ts'
import { canSeeManagerFields, hasHiddenPhones, listVisibleChannels } from '../../visibility/policy.ts'
import { digestParts, type ExportWork, type FileEnd, type StepResult, writePart } from './parts.ts'

/* A file of contacts, as the key that asked for it may see them: a part has the contacts of some batches. */

/** Contacts are gathered until their lines are so long, or took so long to read. */
const PART_CHARS = 4_000_000
const GATHER_MS = 10_000

/** What a caller may see of contacts, for comparison: who may see something else gets another file. */
export const describeView = (actor: Actor): string =>
  JSON.stringify([
    canSeeManagerFields(actor),
    hasHiddenPhones(actor),
    listVisibleChannels(actor)?.toSorted() ?? null,
  ])

/** Returns the key that asked for a file. Throws 403 where it may not have it, or may see something else since. */
const requireViewer = async (app: App, running: RunningContactsExport): Promise<Actor> => {
  const actor = await findActor(app, running)
  if (!actor.key.scopes.includes('mcp:read'))
    throw new Problem('forbidden', 'The key that began the export may not read any more.')
  if (describeView(actor) === running.contacts.view) return actor
  throw new Problem('forbidden', 'What the key that began the export may see has changed. Make a new export.')
}

/** Writes the contacts of the next batches as a part; undefined when all are written. */
export const writeNext = async (
  work: ExportWork<RunningContactsExport>,
  signal: AbortSignal,
): Promise<StepResult | undefined> => {
  const { app, running } = work
  const { workspace_id: workspaceId, id, contacts, counts } = running
  const actor = await requireViewer(app, running)
  const { header, line } = createContactLines(contacts.format, contacts.fields)
  const until = performance.now() + GATHER_MS
  const texts = running.step === 0 ? [header] : []
  const found = { done: 0, contacts: 0, truncated: 0 }
  let characters = 0
  let { step } = running
  do {
    const ids = await findExportBatch(app.db, workspaceId, id, step)
    if (!ids) break
    const { rows, fields } = await listWholeContacts(app.db, workspaceId, ids, getTimelineScope(actor))
    const shown = rows.map((row) => showContact(actor, row, fields, 'full'))
    const text = shown.map(line).join('')
    texts.push(text)
    characters += text.length
    found.done += ids.length
    found.contacts += shown.length
    found.truncated += shown.filter(hasTruncatedValue).length
    step++
  } while (characters < PART_CHARS && performance.now() < until && !signal.aborted)
  // A file without contacts has its header still.
  if (step === running.step && step > 0) return undefined
  const part = await writePart(work, [Buffer.from(texts.join(''))])
  const sum = (name: keyof typeof found) => (counts[name] ?? 0) + found[name]
  return {
    parts: [{ ...part, entry: null }],
    to: {
      step: Math.max(step, 1),
      position: null,
      counts: { done: sum('done'), contacts: sum('contacts'), truncated: sum('truncated') },
    },
  }
}

/** Reads the file for its digest. */
export const writeEnd = async (work: ExportWork<RunningContactsExport>): Promise<FileEnd> => {
  const { app, running } = work
  await requireViewer(app, running)
  const parts = await listParts(app.db, running.workspace_id, running.id)
  const hash = await digestParts(work, parts)
  return { parts: [], size: parts.reduce((sum, { size }) => sum + size, 0), sha256: hash.digest('hex') }
}
