import { isObject } from '../../../catalog/values.ts'
import { findAccountClockOffset } from '../storage/numbers.ts'
import { loadSandboxSettings } from '../storage/settings.ts'
import {
  findSandboxTemplate,
  insertSandboxTemplates,
  listSandboxTemplates,
  listUnknownTemplates,
  lockSandboxTemplate,
  type SandboxTemplate,
  wasTemplateDeletedSince,
  updateSandboxTemplate,
} from '../storage/templates.ts'
import { insertSandboxUpdates } from '../storage/updates.ts'
import { type SandboxCall, isNonEmptyText, addMs, okResponse, inTransaction } from './call.ts'
import { invalidTemplate, invalidParameter, unknownObject, parameterRequired } from './errors.ts'
import { newObjectId } from './ids.ts'
import { requireAccount } from './numbers.ts'
import { parseFieldList, formatPage, parsePageQuery, pickNodeFields } from './pages.ts'
import { TEMPLATE_CATEGORIES, checkEnvelope, checkTemplateComponents } from './template-checks.ts'
import { importSamples, requireUploadedSamples } from './template-samples.ts'
import { templateUpdate } from './updates.ts'

const DAY_MS = 86_400_000
/** Days that a name stays reserved after its template was deleted. */
const COOLDOWN_DAYS = 30
/** Days that an archived template can be restored. */
export const ARCHIVE_DAYS = 28

const NODE = 'WhatsAppMessageTemplate'
const FIELDS = [
  'id',
  'name',
  'language',
  'status',
  'category',
  'previous_category',
  'rejected_reason',
  'quality_score',
  'components',
  'parameter_format',
  'sub_category',
  'message_send_ttl_seconds',
  'correct_category',
  'cta_url_link_tracking_opted_out',
  'library_template_name',
]
const DEFAULT_FIELDS = ['name', 'parameter_format', 'components', 'language', 'status', 'category', 'id']

export const templateNode = (t: SandboxTemplate): Record<string, unknown> => ({
  name: t.name,
  parameter_format: t.parameter_format,
  components: t.components,
  language: t.language,
  status: t.status,
  category: t.category,
  ...(t.previous_category === null ? {} : { previous_category: t.previous_category }),
  rejected_reason: t.rejected_reason,
  quality_score: { score: 'UNKNOWN', date: Math.floor(Date.parse(t.created_at) / 1000) },
  id: t.id,
})

/** The time at the numbers of an account. */
const timeOfAccount = async (call: Pick<SandboxCall, 'db' | 'now'>, account: string): Promise<string> =>
  addMs(call.now(), await findAccountClockOffset(call.db, account))

/** Serves `POST /{waba}/message_templates`. */
export const handleCreateTemplate = async (call: SandboxCall): Promise<Response> => {
  const account = await requireAccount(call)
  const { name, language, category } = checkEnvelope(call.body)
  const format = call.body.parameter_format ?? 'POSITIONAL'
  if (format !== 'POSITIONAL' && format !== 'NAMED')
    throw invalidParameter('Param parameter_format must be one of {NAMED, POSITIONAL}.')
  const components = checkTemplateComponents(call.body.components, category, format === 'NAMED')
  await requireUploadedSamples(call.db, components)
  const settings = await loadSandboxSettings(call.db, account)
  const now = await timeOfAccount(call, account)
  const status = category === 'AUTHENTICATION' ? 'APPROVED' : 'PENDING'
  const template = {
    id: newObjectId(),
    account_id: account,
    name,
    language,
    category,
    status,
    parameter_format: format,
    components,
    created_at: now,
    review_at:
      status === 'PENDING' && settings.review_seconds !== null
        ? addMs(now, settings.review_seconds * 1000)
        : null,
  }
  if (await wasTemplateDeletedSince(call.db, account, name, language, addMs(now, -COOLDOWN_DAYS * DAY_MS))) {
    throw invalidTemplate(
      2388023,
      'Message Template Language is Being Deleted',
      `New ${language} content can't be added while the existing ${language} content is being deleted. ` +
        'Try again in 4 weeks or consider creating a new message template.',
    )
  }
  if ((await insertSandboxTemplates(call.db, [template])) === 0) {
    throw invalidTemplate(
      2388024,
      'Content in This Language Already Exists',
      `There is already ${language} content for this template. You can create a new template and try again.`,
    )
  }
  return okResponse({ id: template.id, status, category })
}

const queryList = (query: URLSearchParams, name: string): string[] | undefined => {
  const text = query.get(name)
  if (text === null || text === '') return undefined
  const given = text.startsWith('[') ? parseJsonList(text) : text.split(',')
  return given.map((v) => v.trim())
}

const parseJsonList = (text: string): string[] => {
  try {
    const list: unknown = JSON.parse(text)
    return Array.isArray(list) ? list.map(String) : [text]
  } catch {
    return [text]
  }
}

/** Serves `GET /{waba}/message_templates`, newest first. */
export const handleListTemplates = async (call: SandboxCall): Promise<Response> => {
  const account = await requireAccount(call)
  const { query } = call
  const fields = parseFieldList(query, NODE, FIELDS, DEFAULT_FIELDS)
  const wanted = parsePageQuery(query, 25, 1000)
  const rows = await listSandboxTemplates(
    call.db,
    account,
    {
      name: query.get('name') ?? undefined,
      status: queryList(query, 'status'),
      category: queryList(query, 'category'),
      language: queryList(query, 'language'),
      after: wanted.after,
      before: wanted.before,
    },
    wanted.limit + 1,
  )
  return okResponse(
    formatPage(rows, wanted, call.request.url, (t) => pickNodeFields(templateNode(t), fields)),
  )
}

/** Serves `GET /{template}`; undefined when the id is not of a template. */
export const handleReadTemplate = async (call: SandboxCall): Promise<Response | undefined> => {
  const template = await findSandboxTemplate(call.db, call.path.id!)
  return (
    template &&
    okResponse(
      pickNodeFields(templateNode(template), parseFieldList(call.query, NODE, FIELDS, DEFAULT_FIELDS)),
    )
  )
}

const EDITABLE_STATUSES = ['APPROVED', 'REJECTED', 'PAUSED']

/** Serves `POST /{template}`: new components or a new category, which must be reviewed. */
export const handleEditTemplate = async (call: SandboxCall): Promise<Response | undefined> =>
  await inTransaction(call.db, async (tx) => {
    const template = await lockSandboxTemplate(tx, call.path.id!)
    if (!template) return undefined
    const { components, category = template.category } = call.body
    if (components === undefined && call.body.category === undefined) throw parameterRequired('components')
    if (typeof category !== 'string' || !TEMPLATE_CATEGORIES.includes(category))
      throw invalidParameter(`Param category must be one of {${TEMPLATE_CATEGORIES.join(', ')}}.`)
    if (!EDITABLE_STATUSES.includes(template.status))
      throw invalidTemplate(
        2388039,
        "Message template can't be edited",
        `A template that is ${template.status} can't be edited. ` +
          'Only approved, rejected or paused templates can.',
      )
    if (category !== template.category && template.status === 'APPROVED')
      throw invalidTemplate(
        2388039,
        "Message template category can't be edited",
        "The category of an approved template can't be changed.",
      )
    const parts =
      components === undefined
        ? template.components
        : checkTemplateComponents(components, category, template.parameter_format === 'NAMED')
    await requireUploadedSamples(tx, parts)
    const settings = await loadSandboxSettings(tx, template.account_id)
    const now = await timeOfAccount({ ...call, db: tx }, template.account_id)
    await updateSandboxTemplate(tx, template, {
      components: parts,
      category,
      status: 'PENDING',
      rejected_reason: 'NONE',
      review_at: settings.review_seconds === null ? null : addMs(now, settings.review_seconds * 1000),
    })
    return okResponse({ success: true })
  })

/** Serves `POST /{template}/unpause`. */
export const handleUnpauseTemplate = async (call: SandboxCall): Promise<Response> =>
  await inTransaction(call.db, async (tx) => {
    const template = await lockSandboxTemplate(tx, call.path.id!)
    if (!template) throw unknownObject(call.path.id!, call.method)
    if (template.status !== 'PAUSED')
      throw invalidTemplate(2388093, 'Template is not paused', 'Only paused templates can be unpaused.')
    await insertSandboxUpdates(tx, [
      templateUpdate(await updateSandboxTemplate(tx, template, { status: 'APPROVED' }), 'APPROVED'),
    ])
    return okResponse({ success: true })
  })

/** Serves `DELETE /{waba}/message_templates`: every language of a name, or the one with `hsm_id`. */
export const handleDeleteTemplates = async (call: SandboxCall): Promise<Response> => {
  const account = await requireAccount(call)
  const name = call.query.get('name') ?? undefined
  const id = call.query.get('hsm_id') ?? undefined
  if (name === undefined && id === undefined) throw parameterRequired('name')
  const now = await timeOfAccount(call, account)
  return await inTransaction(call.db, async (tx) => {
    const found =
      id === undefined
        ? await listSandboxTemplates(tx, account, { name }, 1000)
        : ([await lockSandboxTemplate(tx, id)].filter(
            (t) => t?.account_id === account && (name === undefined || t.name === name),
          ) as SandboxTemplate[])
    if (found.length === 0)
      throw invalidTemplate(
        2593002,
        'Message Template Not Found',
        'The message template you are trying to delete does not exist.',
      )
    for (const template of found)
      await updateSandboxTemplate(tx, template, {
        status: 'DELETED',
        deleted_at: now,
        review_at: null,
        archived_at: null,
      })
    return okResponse({ success: true })
  })
}

/** Parses ids: a list or, as some clients send them, one text with commas. */
const parseIds = (call: SandboxCall): string[] => {
  const given = call.body.hsm_ids
  if (given === undefined) throw parameterRequired('hsm_ids')
  const ids = typeof given === 'string' ? given.split(',').map((id) => id.trim()) : given
  if (!Array.isArray(ids) || ids.length === 0 || ids.length > 100)
    throw invalidParameter('Param hsm_ids must be a list of 1 to 100 ids.')
  return [...new Set(ids.map((id: unknown) => String(id).slice(0, 100)))]
}

/** Serves `POST /{waba}/message_templates/archive` and `/unarchive`. */
export const handleArchiveTemplates = async (call: SandboxCall): Promise<Response> => {
  const account = await requireAccount(call)
  const unarchive = call.path.edge === 'unarchive'
  const ids = parseIds(call)
  const now = await timeOfAccount(call, account)
  return await inTransaction(call.db, async (tx) => {
    const changedIds: string[] = []
    const failed: Record<string, string> = {}
    // Locked in one order, so that two calls never deadlock.
    for (const id of [...ids].sort()) {
      const template = await lockSandboxTemplate(tx, id)
      const isChangeable =
        template?.account_id === account &&
        (unarchive
          ? template.status === 'ARCHIVED'
          : template.status === 'APPROVED' || template.status === 'REJECTED')
      if (!isChangeable) {
        failed[id] = unarchive
          ? 'Only archived templates can be unarchived'
          : 'Only approved or rejected templates can be archived'
        continue
      }
      const changed = await updateSandboxTemplate(
        tx,
        template,
        unarchive
          ? { status: template.kept_status ?? 'APPROVED', kept_status: null, archived_at: null }
          : { status: 'ARCHIVED', kept_status: template.status, archived_at: now },
      )
      await insertSandboxUpdates(tx, [templateUpdate(changed, unarchive ? 'UNARCHIVED' : 'ARCHIVED')])
      changedIds.push(id)
    }
    const inOrder = ids.filter((id) => changedIds.includes(id))
    return okResponse(
      unarchive
        ? { unarchived_templates: inOrder, failed_templates: failed }
        : { archived_templates: inOrder, failed_templates: failed },
    )
  })
}

/** How many templates one statement adds: each may have several samples, and parameters are limited. */
const IMPORT_SIZE = 200

/**
 * Adds templates that were not created here, but for those whose account, name and language exist. Returns how many it
 * added.
 */
export const importTemplates = async (
  call: SandboxCall,
  given: readonly Record<string, unknown>[],
): Promise<number> => {
  const templates = given.map(parseImported)
  const times = new Map<string, string>()
  let added = 0
  for (let i = 0; i < templates.length; i += IMPORT_SIZE) {
    // Most are known: a server sends all that it has, again and again.
    const unknown = await listUnknownTemplates(call.db, templates.slice(i, i + IMPORT_SIZE))
    if (unknown.length === 0) continue
    for (const { account_id: account } of unknown)
      if (!times.has(account)) times.set(account, await timeOfAccount(call, account))
    await importSamples(
      call.db,
      unknown.flatMap(({ components }) => components),
    )
    const rows = unknown.map((t) => ({ ...t, created_at: times.get(t.account_id)!, review_at: null }))
    added += await insertSandboxTemplates(call.db, rows)
  }
  return added
}

const parseImported = ({
  id,
  account_id: account,
  name,
  language,
  category,
  status,
  components,
  parameter_format: format,
}: Record<string, unknown>) => {
  if (!isNonEmptyText(account) || !isNonEmptyText(name) || !isNonEmptyText(language))
    throw invalidParameter('Each template needs account_id, name and language.')
  if (!Array.isArray(components) || !components.every(isObject))
    throw invalidParameter('Param components must be a list of objects.')
  const isNamed = format === 'NAMED' || /\{\{\s*[a-z_]/.test(JSON.stringify(components))
  return {
    id: isNonEmptyText(id) ? id : newObjectId(),
    account_id: account,
    name,
    language,
    category: isNonEmptyText(category) ? category : 'UTILITY',
    status: isNonEmptyText(status) ? status : 'APPROVED',
    parameter_format: isNamed ? 'NAMED' : 'POSITIONAL',
    components,
  }
}
