import { listAllChannels, listAllStaff, listAllTeams } from '../../storage/admin.ts'
import { readCounter } from '../../storage/counters.ts'
import { insertField, listFields, markFieldsUsed, type NewField } from '../../storage/custom-fields.ts'
import type { Db } from '../../storage/database.ts'
import { analyzeDemo, areMany, fillAlone, insertDemoContacts } from '../../storage/demo.ts'
import { findGroupByName, findLabels, insertGroup, insertTags } from '../../storage/labels.ts'
import { fold } from '../../storage/text.ts'
import { typesOf } from '../contacts/input.ts'
import { prepareBroadcasts } from './broadcasts.ts'
import { commonFields, groupsOfDemo, tagNames } from './labels.ts'
import { personOf, type Setting } from './people.ts'
import type { Policy } from './talk.ts'
import type { Recent } from './talks.ts'

/** Contacts per statement; more than this gained nothing. */
const BATCH = 2000

export type Generation = {
  contacts: number
  /** The same seed makes the same people. */
  seed: number
  /** ISO 8601; people are spread over the two years before it. */
  now: string
  /** Fields beyond the common five, of which about a third of the contacts have a value. */
  otherFields?: readonly NewField[]
  /** Conversations of the nth contact; 2 when absent. */
  conversations?: (n: number) => number
  /** Where people's last conversations stand among those of the last days; with it they talk at length. */
  recent?: (n: number) => Recent | undefined
  /** The service level of the conversations. */
  policy?: Policy
  onProgress?: (made: number) => void
}

/**
 * Adds lifelike contacts to a workspace, with five custom values, three tags, some groups and two
 * conversations each, and broadcasts that some of them received. A second run goes on where the first
 * ended. Answers how many were made: phones that are taken are passed over. When they are many more than
 * there are, nobody else reads contacts meanwhile.
 */
export const generateContacts = async (
  db: Db,
  workspaceId: string,
  generation: Generation,
): Promise<{ created: number }> => {
  const { contacts, onProgress } = generation
  const setting = await prepare(db, workspaceId, generation)
  const alone = !db.isTransaction && (await areMany(db, contacts))
  const created = alone
    ? await fillAlone(db, (tx) => insertPeople(tx, workspaceId, setting, onProgress))
    : await insertPeople(db, workspaceId, setting, onProgress)
  await markFieldsUsed(db, workspaceId, [
    ...setting.fields.map((f) => f.field.id),
    ...(setting.emailFieldId === undefined ? [] : [setting.emailFieldId]),
  ])
  if (contacts >= BATCH) await analyzeDemo(db)
  return { created }
}

const insertPeople = async (
  db: Db,
  workspaceId: string,
  setting: Setting,
  onProgress: (made: number) => void = () => {},
): Promise<number> => {
  const first = await readCounter(db, workspaceId, 'contacts')
  let created = 0
  // The next batch is made while the database writes this one.
  let writing: Promise<number> = Promise.resolve(0)
  for (let at = 0; at < setting.contacts; at += BATCH) {
    const batch = Array.from({ length: Math.min(BATCH, setting.contacts - at) }, (_, i) =>
      personOf(setting, first + at + i, at + i),
    )
    created += await writing
    onProgress(created)
    writing = insertDemoContacts(db, workspaceId, setting.types, batch)
  }
  created += await writing
  onProgress(created)
  return created
}

const prepare = async (
  db: Db,
  workspaceId: string,
  { contacts, seed, now, otherFields = [], conversations = () => 2, recent, policy }: Generation,
): Promise<Setting> => {
  for (const field of [...commonFields, ...otherFields]) await insertField(db, workspaceId, field, now)
  const fields = await listFields(db, workspaceId)
  const known = (wanted: readonly NewField[], share: number) =>
    wanted.flatMap(({ key, type }) => {
      const field = fields.find((f) => f.key === key && f.type === type)
      return field ? [{ field, share }] : []
    })
  await insertTags(db, workspaceId, tagNames, now)
  const tags = await findLabels(db, workspaceId, 'tag', [], tagNames.map(fold))
  const groups: string[] = []
  for (const { name, emoji } of groupsOfDemo) {
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
    types: typesOf(fields),
    fields: [...known(commonFields, 1), ...known(otherFields, 0.35)],
    tagIds: tagNames.map((name) => tags.find((t) => t.name_key === fold(name))!.id),
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
