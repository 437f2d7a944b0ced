import { findOperation, type Operation } from '../../../../catalog/index.ts'
import { describeOffer, isOffer } from '../../../../catalog/interactive.ts'
import { showHidden } from '../../../../catalog/text.ts'
import { isObject } from '../../../../catalog/values.ts'
import type { Db } from '../../../../storage/database.ts'
import type { App } from '../../../app.ts'
import type { Actor } from '../../../kernel/context.ts'
import { createRead, createRecordReader, type Read, type RecordKind } from '../../snapshot/read-records.ts'
import { listFiltersOfCall } from '../../../domains/saved-filters/naming.ts'
import { describeBulk } from './bulk-summary.ts'
import { listReferences, records } from './call-records.ts'
import { listDeclining, listTagIds } from './subject-records.ts'
import { line, toWords } from './summary-line.ts'

/*
 * What a person decides on, before a call runs: in words, whole, and as this person may see it. The records are
 * read by the operations that show them, so that what is masked elsewhere is masked here.
 */

type Json = Record<string, unknown>

const at = (value: unknown, ...path: string[]): unknown =>
  path.reduce<unknown>((inner, name) => (isObject(inner) ? inner[name] : undefined), value)

/** A name in quotes where it could pose as more than a name. */
const quoteName = (name: unknown): unknown =>
  typeof name === 'string' && /[",:]/.test(name) ? JSON.stringify(name) : name

/** Names a record by what its parts are, without those that are missing. */
const join = (...parts: unknown[]): string | undefined =>
  parts.filter((part) => typeof part === 'string' && part !== '').join(', ') || undefined

const describeContact = (contact: unknown, id: unknown): string[] => [
  ...line(
    'Customer',
    isObject(contact)
      ? join(quoteName(contact.name) ?? 'without a name', contact.phone, `contact ${String(contact.id)}`)
      : id && `contact ${String(id)}`,
  ),
  ...(at(contact, 'dnd') === true || at(contact, 'dnd_enabled') === true
    ? ['Do-not-disturb: yes, no marketing']
    : []),
]

/** What the customer has withdrawn the consent to. */
const describeWithdrawals = async (read: Read, id: unknown): Promise<string[]> => {
  if (typeof id !== 'string') return []
  const answer = await read('crm_list_consents', { contact_id: id, limit: 100 })
  const withdrawn = ((answer?.data ?? []) as Json[]).filter(
    ({ holds, state }) => holds === true && state === 'withdrawn',
  )
  return line(
    'Consent withdrawn',
    withdrawn
      .map(({ purpose, channel, at: time }) => `${String(purpose)} (${String(channel)}) at ${String(time)}`)
      .join(', '),
  )
}

/** A time as the clocks of the workspace show it, such as `2026-10-02 12:25 Europe/Berlin`. */
const showTime = (time: unknown, zone: string): string => {
  const shown = Temporal.Instant.from(String(time)).toZonedDateTimeISO(zone)
  return `${shown.toPlainDate().toString()} ${shown.toPlainTime().toString({ smallestUnit: 'minute' })} ${zone}`
}

const describeWindow = (window: unknown, zone: string): string[] => {
  if (!isObject(window)) return []
  if (window.open !== true) return [`Reply window: closed (${String(window.reason)}); only templates arrive`]
  return [`Reply window: open${window.closes_at ? ` until ${showTime(window.closes_at, zone)}` : ''}`]
}

/** The message that a call answers or follows: its beginning, so that what is decided on stays in sight. */
const describeLastMessage = ({ last_message: last }: Json): string[] => {
  if (!isObject(last) || last.direction === 'system') return []
  const label = `Last message ${last.direction === 'inbound' ? 'of' : 'to'} the customer`
  return line(label, last.text ? `${String(last.text)}${last.text_truncated ? ' …' : ''}` : last.type)
}

const describeConversation = (conversation: Json, zone: string): string[] => [
  ...line(
    'Channel',
    join(
      at(conversation, 'channel', 'name'),
      at(conversation, 'channel', 'type'),
      `conversation ${String(conversation.id)}`,
    ),
  ),
  ...describeWindow(conversation.window, zone),
  ...line('Assigned to', at(conversation, 'assignee', 'name')),
  ...describeLastMessage(conversation),
]

/** A message as it would be sent, by the dry run. */
const describeMessage = (input: Json, output: Json): string[] => {
  const message = output.message
  const media = at(message, 'media')
  const content = at(message, 'content') as { kind: string } | null | undefined
  return [
    ...line('Type', at(message, 'type')),
    ...line('Template', join(at(message, 'template', 'name'), at(message, 'template', 'language'))),
    ...line('Text', output.preview ?? at(message, 'text') ?? input.text),
    ...((output.parts ?? []) as { part: string; text: string }[]).flatMap(({ part, text }) =>
      line(showHidden(part), text),
    ),
    ...line('To tap', isOffer(content) ? describeOffer(content).join('\n') : undefined),
    ...line('File', join(input.media_url, at(media, 'file_name'), at(media, 'content_type'))),
    ...(JSON.stringify([input.media_url, input.template]).includes('https:')
      ? ['Files at addresses are fetched when the message is sent: what is there then is what arrives.']
      : []),
    ...(output.parts ? [] : line('Values', withoutName(input.template))),
    'Recipients: 1',
  ]
}

/** The values of a template, without what is named beside them. */
const withoutName = (template: unknown): Json | undefined => {
  if (!isObject(template)) return undefined
  const { name: _name, language: _language, ...values } = template
  return Object.keys(values).length > 0 ? values : undefined
}

/** What a job does, how far it is and who began it: its id alone says nothing to who decides on it. */
const describeJob = (id: string, job: Json, zone: string): string[] => [
  ...line(
    'Job',
    join(
      findOperation(String(job.operation))?.summary ?? job.operation,
      job.state,
      `${String(job.done)} of ${String(job.total)} done, ${String(job.changed)} changed`,
      `begun ${showTime(job.created_at, zone)}`,
      at(job, 'created_by', 'name') === null ? undefined : `by ${String(at(job, 'created_by', 'name'))}`,
      `id ${id}`,
    ),
  ),
  ...(isEmpty(job.input) ? [] : line('Input of the job', JSON.stringify(job.input))),
]

const describeRecord = (id: string, record: Json | null): string | undefined => {
  const count = record?.contacts_count
  const { contact, channel } = record ?? {}
  return join(
    quoteName(record?.name ?? record?.title ?? record?.label ?? at(contact, 'name')) ?? record?.url,
    record?.key,
    record?.phone ?? at(contact, 'phone'),
    at(channel, 'name'),
    record?.event_type_id,
    record?.language,
    record?.status,
    typeof count === 'number' ? `${count} contacts` : undefined,
    `id ${id}`,
  )
}

const listSubscribed = ({ subscriptions }: Json): string =>
  ((at(subscriptions, 'event_types') ?? []) as { id: string; active: boolean }[])
    .map(({ id, active }) => (active ? id : `${id} (not active)`))
    .join(', ')

/** As many records of a call have details, and as many options of a field are named: a question is to fit a client. */
const MAX_DETAILED = 5
const MAX_OPTIONS = 30

const listOptions = ({ options }: Json): string => {
  const labels = ((options ?? []) as { label: string }[]).map(({ label }) => label)
  const more = labels.length - MAX_OPTIONS
  return labels.slice(0, MAX_OPTIONS).join(', ') + (more > 0 ? `, and ${more} more` : '')
}

/** What else a person decides by: all of it is compared with what becomes of the record (`subject-records.ts`). */
const details: Partial<Record<RecordKind, (record: Json) => string[]>> = {
  endpoint: (record) => [
    ...line('Events of the endpoint', listSubscribed(record) || 'none'),
    ...line('Payload format', record.payload_format),
    ...line('Headers', Object.keys((record.custom_headers ?? {}) as Json).join(', ')),
  ],
  template: ({ category, body }) => line('Template text', join(category, at(body, 'text'))),
  quick_message: (record) => [
    ...line('Text of the quick message', record.text),
    ...line('File', join(record.media_url, record.file_name)),
    ...line('Visible to', record.visibility),
  ],
  broadcast: ({ template_name: template, totals, scheduled_at: at }) => [
    ...line('Template', template),
    ...line('Recipients', isObject(totals) && totals.recipients),
    ...line('Scheduled before', at),
  ],
  custom_field: (record) => [
    ...line('Type and visibility', join(record.type, record.visibility)),
    ...line('Options', listOptions(record)),
  ],
}

const describeRecords = async (read: Read, op: Operation, input: Json, zone: string): Promise<string[]> => {
  const readRecord = createRecordReader(read)
  const lines: string[] = []
  const references = listReferences(op, input)
  for (const [field, id] of references) {
    const { label, kind } = records[field]!
    const record = await readRecord({ kind, id })
    lines.push(
      ...(kind === 'job' && record ? describeJob(id, record, zone) : line(label, describeRecord(id, record))),
      ...(record && references.length <= MAX_DETAILED ? (details[kind]?.(record) ?? []) : []),
    )
  }
  return lines
}

/**
 * Whom the undo of a merge brings back, and out of whom. A contact that was merged is read nowhere, so it is shown as
 * the dry run answered it.
 */
const describeUndoneMerge = async (read: Read, output: Json | null): Promise<string[]> => {
  const { contact: back, kept_contact: kept } = output ?? {}
  if (!isObject(back) || !isObject(kept)) return []
  const shown = (await read('crm_get_contact', { contact_id: String(kept.id) })) ?? kept
  return [
    ...line('Comes back', describeRecord(String(back.id), back)),
    ...line('Out of', describeRecord(String(kept.id), shown)),
  ]
}

/** Tags that are named by their ids. */
const describeTags = async (read: Read, input: Json): Promise<string[]> => {
  const readRecord = createRecordReader(read)
  const lines: string[] = []
  for (const id of listTagIds(input))
    lines.push(...line(records['tag_id']!.label, describeRecord(id, await readRecord({ kind: 'tag', id }))))
  return lines
}

/** Saved filters that match others once the call has run. */
const describeFiltersNaming = async (read: Read, filters: readonly { id: string }[]): Promise<string[]> => {
  const lines: string[] = []
  for (const { id } of filters) {
    const record = await read('crm_get_saved_filter', { saved_filter_id: id })
    lines.push(...line('Named in the saved filter', describeRecord(id, record)))
  }
  return lines
}

/** Where a message goes that begins a conversation, in which the customer has not written. */
const describeNewConversation = async (
  read: Read,
  op: Operation,
  { input, output, zone }: { input: Json; output: Json; zone: string },
): Promise<string[]> => {
  const channelId = input.channel_id ?? at(output.message, 'channel_id')
  return [
    ...(typeof channelId === 'string'
      ? await describeRecords(read, op, { channel_id: channelId }, zone)
      : []),
    // Whether the number has one is not told where phones are hidden.
    input.phone === undefined
      ? 'Reply window: none; the message begins a conversation'
      : 'Conversation: that of the number on this channel, or a new one',
  ]
}

/** The message that a reply quotes. */
const describeQuoted = async (read: Read, { reply_to_id: id }: Json): Promise<string[]> => {
  if (typeof id !== 'string') return []
  const quoted = await read('messaging_get_message', { message_id: id })
  return line(`In reply to message ${id}`, quoted?.text ?? quoted?.type ?? 'not visible')
}

/** Secrets are no question: who decides sees that there are some. */
const hideSecrets = (field: string, value: unknown): unknown =>
  field === 'custom_headers' && isObject(value)
    ? Object.fromEntries(Object.keys(value).map((name) => [name, '****']))
    : value

const isEmpty = (value: unknown): boolean =>
  value === null || value === '' || (typeof value === 'object' && Object.keys(value).length === 0)

/** What a call empties is named: it is gone then. */
const describeFields = (input: Json): string[] =>
  Object.entries(input).flatMap(([field, value]) => {
    if (field === 'if_version')
      return value === '*' ? [] : ['Only if nobody has changed it since it was read']
    if (isEmpty(value)) return [`${field}: (emptied)`]
    return field in records
      ? []
      : [
          ...(Array.isArray(value) ? [`${field}: ${value.length} entries`] : []),
          ...line(
            field,
            Array.isArray(value) && value.every((v) => typeof v === 'string')
              ? value.join(', ')
              : hideSecrets(field, value),
          ),
        ]
  })

/** Whom a broadcast is for, and how; what is sent, and when, has lines of its own. */
const toTargetFields = ({
  template: _template,
  hours: _hours,
  scheduled_at: _scheduledAt,
  ...rest
}: Json): Json => rest

/** Which contacts a filter means, with the names of tags and groups. */
const describeFilter = async (read: Read, { filter }: Json): Promise<string[]> =>
  isObject(filter) && Object.keys(filter).length > 0
    ? line('The filter means', (await read('crm_check_filter', { filter }))?.explanation)
    : []

/** How many records of a list a dry run says would fail. */
const countFailed = ({ failed }: Json): number =>
  Array.isArray(failed) ? failed.length : typeof failed === 'number' ? failed : 0

/**
 * What a dry run found out, as numbers and short words; the rest of its answer is what was asked for, or how the record
 * is anyway. Its warnings speak to who made the call, and who reads them may be somebody else.
 */
const describeOutcome = (op: Operation, output: Json): string[] => {
  const failed = countFailed(output)
  const findings = Object.entries(output).filter(
    ([name, value]) =>
      !['dry_run', 'id', 'failed', 'phone_masked'].includes(name) &&
      !(name in op.input.shape) &&
      ['number', 'boolean'].includes(typeof value),
  )
  const warnings = Array.isArray(output.warnings) ? (output.warnings as unknown[]) : []
  return [
    showHidden(
      [
        failed > 0 ? `Dry run: ${failed} would fail` : 'Dry run: no errors',
        ...findings.map(([name, value]) => `${name.replaceAll('_', ' ')} ${String(value)}`),
      ].join('; '),
    ),
    ...warnings.flatMap((warning) => line('Warning to the caller', toWords(warning))),
  ]
}

/**
 * Returns what a person decides on, line by line: what is done to whom, through which channel and window, the whole
 * text or template as it would be sent, how many it reaches, and what the dry run found. No text that is sent is cut;
 * characters that nobody sees are written as `\u{…}`. `actor`: who reads it. `output`: of the dry run, null if there is
 * none. `planId`: of the plan that keeps what a filter found.
 */
export const summarizeCall = async (
  app: App,
  db: Db,
  { actor, op, input, output, planId }: { actor: Actor } & Parameters<App['summarizeCall']>[2],
): Promise<string[]> => {
  const read = createRead(app, db, actor)
  const zone = actor.workspace.timezone
  const conversationId = input.conversation_id ?? output?.conversation_id
  const conversation =
    typeof conversationId === 'string'
      ? await read('inbox_get_conversation', { conversation_id: conversationId })
      : undefined
  const contact =
    conversation?.contact ??
    (typeof input.contact_id === 'string'
      ? await read('crm_get_contact', { contact_id: input.contact_id })
      : undefined)
  const isSend = op.confirm === 'send' && output !== null && 'message' in output
  const isBulk = op.name === 'messaging_send_bulk' && output !== null
  return [
    op.summary,
    ...describeContact(contact, input.contact_id),
    ...(await describeWithdrawals(read, at(contact, 'id'))),
    ...(isSend ? line('Phone', input.phone) : []),
    ...(conversation
      ? describeConversation(conversation, zone)
      : line('Conversation', input.conversation_id)),
    ...(isSend && !conversation ? await describeNewConversation(read, op, { input, output, zone }) : []),
    ...(isSend
      ? [...describeMessage(input, output), ...(await describeQuoted(read, input))]
      : [
          ...(await describeRecords(read, op, input, zone)),
          ...(await describeTags(read, input)),
          ...(await describeFiltersNaming(read, await listFiltersOfCall(db, actor.workspace.id, op, input))),
          ...line(
            'Of them have declined messages',
            (await listDeclining({ db, workspaceId: actor.workspace.id, input, planId }))?.length,
          ),
          ...(op.name === 'crm_undo_contact_merge' ? await describeUndoneMerge(read, output) : []),
          ...(await describeFilter(read, input)),
          ...line('Contacts', at(output, 'export', 'contacts', 'total')),
          ...describeFields(isBulk ? toTargetFields(input) : input),
        ]),
    ...line('Starts', output?.starts_at && showTime(output.starts_at, zone)),
    ...(isBulk ? describeBulk(input, output) : []),
    ...(output === null ? [] : describeOutcome(op, output)),
  ]
}
