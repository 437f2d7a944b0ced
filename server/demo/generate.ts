import { listAllChannels, listAllStaff, listAllTeams } from '../../storage/workspace/admin.ts'
import { loadCounter } from '../../storage/workspace/counters.ts'
import {
  insertField,
  listFields,
  markFieldsUsed,
  type NewField,
} from '../../storage/contacts/custom-fields.ts'
import type { Db } from '../../storage/database.ts'
import {
  analyzeDemo,
  shouldRebuildIndexes,
  fillWithoutIndexes,
  insertDemoContacts,
} from '../../storage/demo/demo.ts'
import { findGroupByName, findLabels, insertGroup, insertTags } from '../../storage/labels/labels.ts'
import { fold } from '../../storage/values/text.ts'
import { toFieldTypes } from '../contacts/input.ts'
import { prepareBroadcasts } from './broadcasts.ts'
import { commonDemoFields, demoGroups, demoTagNames } from './labels.ts'
import { createPerson, type DemoSettings } from './people.ts'
import type { DemoSlaPolicy } from './conversation.ts'
import type { RecentSlot } from './outlines.ts'

/** Contacts per statement; larger batches were measured to be no faster. */
const BATCH_SIZE = 2000

export type GenerateOptions = {
  contacts: number
  /** The same seed creates the same contacts. */
  seed: number
  /** ISO 8601; contacts are spread over the two years before it. */
  now: string
  /** Fields beyond the common five; about a third of the contacts have a value for each. */
  otherFields?: readonly NewField[]
  /** Conversations of the nth contact; 2 when absent. */
  conversations?: (n: number) => number
  /** The place of the nth contact's last conversation among those of the last days; see `RecentSlot`. */
  recent?: (n: number) => RecentSlot | undefined
  /** The service level of the conversations. */
  policy?: DemoSlaPolicy
  onProgress?: (created: number) => void
}

/**
 * Adds realistic contacts to a workspace, each with five custom values, three tags, some groups and two
 * conversations, and broadcasts that some of them received. A second run continues where the first ended.
 * Returns how many were created: phones that exist are skipped. When many more are created than exist, the
 * indexes are rebuilt, and contacts cannot be read until that is done.
 */
export const generateContacts = async (
  db: Db,
  workspaceId: string,
  generation: GenerateOptions,
): Promise<{ created: number }> => {
  const { contacts, onProgress } = generation
  const settings = await prepareSettings(db, workspaceId, generation)
  const alone = !db.isTransaction && (await shouldRebuildIndexes(db, contacts))
  const created = alone
    ? await fillWithoutIndexes(db, (tx) => insertContactsInBatches(tx, workspaceId, settings, onProgress))
    : await insertContactsInBatches(db, workspaceId, settings, onProgress)
  await markFieldsUsed(db, workspaceId, [
    ...settings.fields.map((f) => f.field.id),
    ...(settings.emailFieldId === undefined ? [] : [settings.emailFieldId]),
  ])
  if (contacts >= BATCH_SIZE) await analyzeDemo(db)
  return { created }
}

const insertContactsInBatches = async (
  db: Db,
  workspaceId: string,
  settings: DemoSettings,
  onProgress: (created: number) => void = () => {},
): Promise<number> => {
  const first = await loadCounter(db, workspaceId, 'contacts')
  let created = 0
  // The next batch is created while the database writes this one.
  let writing: Promise<number> = Promise.resolve(0)
  for (let at = 0; at < settings.contacts; at += BATCH_SIZE) {
    const batch = Array.from({ length: Math.min(BATCH_SIZE, settings.contacts - at) }, (_, i) =>
      createPerson(settings, first + at + i, at + i),
    )
    created += await writing
    onProgress(created)
    writing = insertDemoContacts(db, workspaceId, settings.types, batch)
  }
  created += await writing
  onProgress(created)
  return created
}

const prepareSettings = async (
  db: Db,
  workspaceId: string,
  { contacts, seed, now, otherFields = [], conversations = () => 2, recent, policy }: GenerateOptions,
): Promise<DemoSettings> => {
  for (const field of [...commonDemoFields, ...otherFields]) await insertField(db, workspaceId, field, now)
  const fields = await listFields(db, workspaceId)
  const known = (wanted: readonly NewField[], share: number) =>
    wanted.flatMap(({ key, type }) => {
      const field = fields.find((f) => f.key === key && f.type === type)
      return field ? [{ field, share }] : []
    })
  await insertTags(db, workspaceId, demoTagNames, now)
  const tags = await findLabels(db, workspaceId, 'tag', [], demoTagNames.map(fold))
  const groups: string[] = []
  for (const { name, emoji } of demoGroups) {
    groups.push(
      (
        (await insertGroup(db, workspaceId, name, emoji, now)) ??
        (await findGroupByName(db, workspaceId, name))!
      ).id,
    )
  }
  const channels = await listAllChannels(db, workspaceId)
  return {
    seed,
    nowMs: Date.parse(now),
    contacts,
    conversations,
    emailFieldId: fields.find((f) => f.key === 'email')?.id,
    types: toFieldTypes(fields),
    fields: [...known(commonDemoFields, 1), ...known(otherFields, 0.35)],
    tagIds: demoTagNames.map((name) => tags.find((t) => t.name_key === fold(name))!.id),
    groupIds: groups,
    channels,
    policy: policy ?? null,
    recent,
    sendings: await prepareBroadcasts(db, workspaceId, channels[0]?.id ?? null, now),
    staff: (await listAllStaff(db, workspaceId))
      .filter((s) => s.enabled)
      .map((s) => ({ id: s.id, channelIds: s.channel_ids })),
    teamIds: (await listAllTeams(db, workspaceId)).map((t) => t.id),
  }
}
