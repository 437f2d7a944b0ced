import { hasAccount } from '../../../storage/sandbox/numbers.ts'
import { readSandboxSettings } from '../../../storage/sandbox/settings.ts'
import {
  findSandboxTemplate,
  insertSandboxTemplate,
  listSandboxTemplates,
  lockSandboxTemplate,
  type SandboxTemplate,
  templateByName,
  wasDeletedSince,
  writeSandboxTemplate,
} from '../../../storage/sandbox/templates.ts'
import { enqueueUpdates } from '../../../storage/sandbox/updates.ts'
import { type Call, isObject, isText, later, ok, within } from './call.ts'
import { badTemplate, invalid, noObject, required } from './errors.ts'
import { newObjectId } from './ids.ts'
import { fieldsOf, page, pageQuery, pick } from './pages.ts'
import { CATEGORIES, checkEnvelope, checkTemplateComponents } from './template-checks.ts'
import { templateUpdate } from './updates.ts'

const DAY_MS = 86_400_000
/** How long a name stays blocked after its template was deleted. */
const COOLDOWN_DAYS = 30
/** How long an archived template can be brought back. */
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
const USUAL = ['name', 'parameter_format', 'components', 'language', 'status', 'category', 'id']

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

const requireAccount = async (call: Call): Promise<string> => {
  const id = call.path.id!
  if (!(await hasAccount(call.db, id))) throw noObject(id, call.method)
  return id
}

/** `POST /{waba}/message_templates`. */
export const createTemplate = async (call: Call): Promise<Response> => {
  const account = await requireAccount(call)
  const { name, language, category } = checkEnvelope(call.body)
  const format = call.body.parameter_format ?? 'POSITIONAL'
  if (format !== 'POSITIONAL' && format !== 'NAMED')
    throw invalid('Param parameter_format must be one of {NAMED, POSITIONAL}.')
  const components = checkTemplateComponents(call.body.components, category, format === 'NAMED')
  const settings = await readSandboxSettings(call.db)
  const now = call.now()
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
        ? later(now, settings.review_seconds * 1000)
        : null,
  }
  if (await wasDeletedSince(call.db, account, name, language, later(now, -COOLDOWN_DAYS * DAY_MS))) {
    throw badTemplate(
      2388023,
      'Message Template Language is Being Deleted',
      `New ${language} content can't be added while the existing ${language} content is being deleted. Try again in 4 weeks or consider creating a new message template.`,
    )
  }
  if (!(await insertSandboxTemplate(call.db, template))) {
    throw badTemplate(
      2388024,
      'Content in This Language Already Exists',
      `There is already ${language} content for this template. You can create a new template and try again.`,
    )
  }
  return ok({ id: template.id, status, category })
}

const values = (query: URLSearchParams, name: string): string[] | undefined => {
  const text = query.get(name)
  if (text === null || text === '') return undefined
  const given = text.startsWith('[') ? tryList(text) : text.split(',')
  return given.map((v) => v.trim())
}

const tryList = (text: string): string[] => {
  try {
    const list: unknown = JSON.parse(text)
    return Array.isArray(list) ? list.map(String) : [text]
  } catch {
    return [text]
  }
}

/** `GET /{waba}/message_templates`, newest first. */
export const listTemplates = async (call: Call): Promise<Response> => {
  const account = await requireAccount(call)
  const { query } = call
  const fields = fieldsOf(query, NODE, FIELDS, USUAL)
  const wanted = pageQuery(query, 25, 1000)
  const rows = await listSandboxTemplates(
    call.db,
    account,
    {
      name: query.get('name') ?? undefined,
      status: values(query, 'status'),
      category: values(query, 'category'),
      language: values(query, 'language'),
      after: wanted.after,
      before: wanted.before,
    },
    wanted.limit + 1,
  )
  return ok(page(rows, wanted, call.request.url, (t) => pick(templateNode(t), fields)))
}

/**
 * `GET /{template}`; undefined when there is no such template, since an id alone does not say what it is
 * of.
 */
export const readTemplate = async (call: Call): Promise<Response | undefined> => {
  const template = await findSandboxTemplate(call.db, call.path.id!)
  return template && ok(pick(templateNode(template), fieldsOf(call.query, NODE, FIELDS, USUAL)))
}

const EDITABLE = ['APPROVED', 'REJECTED', 'PAUSED']

/** `POST /{template}`: its components or its category anew, which goes to the reviewer. */
export const editTemplate = async (call: Call): Promise<Response | undefined> =>
  await within(call.db, async (tx) => {
    const template = await lockSandboxTemplate(tx, call.path.id!)
    if (!template) return undefined
    const { components, category = template.category } = call.body
    if (components === undefined && call.body.category === undefined) throw required('components')
    if (typeof category !== 'string' || !CATEGORIES.includes(category))
      throw invalid(`Param category must be one of {${CATEGORIES.join(', ')}}.`)
    if (!EDITABLE.includes(template.status))
      throw badTemplate(
        2388039,
        "Message template can't be edited",
        `A template that is ${template.status} can't be edited. Only approved, rejected or paused templates can.`,
      )
    if (category !== template.category && template.status === 'APPROVED')
      throw badTemplate(
        2388039,
        "Message template category can't be edited",
        "The category of an approved template can't be changed.",
      )
    const parts =
      components === undefined
        ? template.components
        : checkTemplateComponents(components, category, template.parameter_format === 'NAMED')
    const settings = await readSandboxSettings(tx)
    await writeSandboxTemplate(tx, template, {
      components: parts,
      category,
      status: 'PENDING',
      rejected_reason: 'NONE',
      review_at: settings.review_seconds === null ? null : later(call.now(), settings.review_seconds * 1000),
    })
    return ok({ success: true })
  })

/** `POST /{template}/unpause`. */
export const unpauseTemplate = async (call: Call): Promise<Response> =>
  await within(call.db, async (tx) => {
    const template = await lockSandboxTemplate(tx, call.path.id!)
    if (!template) throw noObject(call.path.id!, call.method)
    if (template.status !== 'PAUSED')
      throw badTemplate(2388093, 'Template is not paused', 'Only paused templates can be unpaused.')
    await enqueueUpdates(tx, [
      templateUpdate(await writeSandboxTemplate(tx, template, { status: 'APPROVED' }), 'APPROVED'),
    ])
    return ok({ success: true })
  })

/** `DELETE /{waba}/message_templates`: every language of a name, or the one with `hsm_id`. */
export const deleteTemplates = async (call: Call): Promise<Response> => {
  const account = await requireAccount(call)
  const name = call.query.get('name') ?? undefined
  const id = call.query.get('hsm_id') ?? undefined
  if (name === undefined && id === undefined) throw required('name')
  return await within(call.db, async (tx) => {
    const found =
      id === undefined
        ? await listSandboxTemplates(tx, account, { name }, 1000)
        : ([await lockSandboxTemplate(tx, id)].filter(
            (t) => t?.account_id === account && (name === undefined || t.name === name),
          ) as SandboxTemplate[])
    if (found.length === 0)
      throw badTemplate(
        2593002,
        'Message Template Not Found',
        'The message template you are trying to delete does not exist.',
      )
    for (const template of found)
      await writeSandboxTemplate(tx, template, {
        status: 'DELETED',
        deleted_at: call.now(),
        review_at: null,
        archived_at: null,
      })
    return ok({ success: true })
  })
}

/** Ids as a list or, as some clients send them, as one text with commas. */
const idsOf = (call: Call): string[] => {
  const given = call.body.hsm_ids
  if (given === undefined) throw required('hsm_ids')
  const ids = typeof given === 'string' ? given.split(',').map((id) => id.trim()) : given
  if (!Array.isArray(ids) || ids.length === 0 || ids.length > 100)
    throw invalid('Param hsm_ids must be a list of 1 to 100 ids.')
  return [...new Set(ids.map((id: unknown) => String(id).slice(0, 100)))]
}

/** `POST /{waba}/message_templates/archive` and `/unarchive`. */
export const archiveTemplates = async (call: Call): Promise<Response> => {
  const account = await requireAccount(call)
  const back = call.path.edge === 'unarchive'
  const ids = idsOf(call)
  return await within(call.db, async (tx) => {
    const done: string[] = []
    const failed: Record<string, string> = {}
    // In one order, so that two calls never wait for each other.
    for (const id of [...ids].sort()) {
      const template = await lockSandboxTemplate(tx, id)
      const fits =
        template?.account_id === account &&
        (back
          ? template.status === 'ARCHIVED'
          : template.status === 'APPROVED' || template.status === 'REJECTED')
      if (!fits) {
        failed[id] = back
          ? 'Only archived templates can be unarchived'
          : 'Only approved or rejected templates can be archived'
        continue
      }
      const changed = await writeSandboxTemplate(
        tx,
        template,
        back
          ? { status: template.kept_status ?? 'APPROVED', kept_status: null, archived_at: null }
          : { status: 'ARCHIVED', kept_status: template.status, archived_at: call.now() },
      )
      await enqueueUpdates(tx, [templateUpdate(changed, back ? 'UNARCHIVED' : 'ARCHIVED')])
      done.push(id)
    }
    const inOrder = ids.filter((id) => done.includes(id))
    return ok(
      back
        ? { unarchived_templates: inOrder, failed_templates: failed }
        : { archived_templates: inOrder, failed_templates: failed },
    )
  })
}

/** Templates that another side made: those that are absent, by id or by account, name and language. */
export const keepTemplate = async (call: Call, given: Record<string, unknown>): Promise<boolean> => {
  const { id, account_id: account, name, language, category, status, components } = given
  if (!isText(account) || !isText(name) || !isText(language))
    throw invalid('Each template needs account_id, name and language.')
  if (!Array.isArray(components) || !components.every(isObject))
    throw invalid('Param components must be a list of objects.')
  const variables = JSON.stringify(components)
  if (await templateByName(call.db, account, name, language)) return false
  return await insertSandboxTemplate(call.db, {
    id: isText(id) ? id : newObjectId(),
    account_id: account,
    name,
    language,
    category: isText(category) ? category : 'UTILITY',
    status: isText(status) ? status : 'APPROVED',
    parameter_format:
      given.parameter_format === 'NAMED' || /\{\{\s*[a-z_]/.test(variables) ? 'NAMED' : 'POSITIONAL',
    components,
    created_at: call.now(),
    review_at: null,
  })
}
