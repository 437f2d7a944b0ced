import { z } from 'zod'
import { isObject } from '../../../catalog/values.ts'
import { Problem } from '../../kernel/problem.ts'
import { lookUpOutcome, type Provider, type ProviderTemplate } from '../port.ts'
import { fetchAllRows, OptionalText, ProviderId, SuccessResponse, withFieldFallback } from './responses.ts'
import { type ProviderRequest, joinPath, type ProviderHttp } from './http.ts'
import { sanitizeProviderText } from './problems.ts'

const Created = z.object({ id: ProviderId, status: z.string().min(1), category: OptionalText })
const Row = z
  .object({
    id: ProviderId,
    name: z.string(),
    language: z.string(),
    status: z.string(),
    category: OptionalText,
    rejected_reason: OptionalText,
    quality_score: z.object({ score: OptionalText }).nullish().catch(null),
    components: z
      .array(z.unknown())
      .nullish()
      .transform((components) => components ?? []),
  })
  .transform(({ rejected_reason: reason, quality_score: quality, ...row }): ProviderTemplate => ({
    ...row,
    components: row.category === 'AUTHENTICATION' ? row.components.map(restoreCodeButtons) : row.components,
    rejectedReason: reason === 'NONE' ? null : reason,
    quality: quality?.score ?? null,
  }))

const CODE_URL = /\/otp\/code\/\?.*\botp_type=(\w+)/

/** The provider lists the button of a code as a link of its own. */
const restoreCodeButtons = (part: unknown): unknown => {
  if (!isObject(part) || !Array.isArray(part['buttons'])) return part
  const buttons = part['buttons'].map((button: unknown) => {
    const [, type] = (isObject(button) && CODE_URL.exec(String(button['url']))) || []
    return type === undefined
      ? button
      : { type: 'OTP', otp_type: type, text: (button as Record<string, unknown>)['text'] }
  })
  return { ...part, buttons }
}

const Ids = z
  .array(ProviderId)
  .nullish()
  .transform((ids) => ids ?? [])
const Failed = z
  .record(z.string(), z.unknown())
  .nullish()
  .transform((failed) => Object.entries(failed ?? {}))
const Archived = z.object({ archived_templates: Ids, failed_templates: Failed })
const Unarchived = z.object({ unarchived_templates: Ids, failed_templates: Failed })

const FIELDS = 'id,name,language,status,category,rejected_reason,quality_score,components'
const BASIC_FIELDS = 'id,name,language,status,category,components'
const PAGE_SIZE = '100'

/** The subcode of a duplicate, which the provider also gives to drafts that are merely wrong. */
const DUPLICATE_SUBCODE = 2388024

type TemplateMethods =
  | 'createTemplate'
  | 'editTemplate'
  | 'listTemplates'
  | 'archiveTemplates'
  | 'unarchiveTemplates'
  | 'deleteTemplate'

export const createTemplatesApi = (
  http: ProviderHttp,
  archiveUrl: string,
): Pick<Provider, TemplateMethods> => {
  const listTemplates = createListTemplates(http)
  return {
    listTemplates,
    createTemplate: createCreateTemplate(http, listTemplates),
    ...createArchiveApi(http, archiveUrl),

    editTemplate: async (templateId, { components, category }, signal) => {
      const json = { components, ...(category === undefined ? {} : { category }) }
      await http.request(SuccessResponse, { method: 'POST', path: joinPath(templateId), json }, signal)
    },

    deleteTemplate: async (accountId, { name, id }, signal) => {
      await http.request(
        SuccessResponse,
        {
          method: 'DELETE',
          path: joinPath(accountId, 'message_templates'),
          query: { name, hsm_id: id },
        },
        signal,
      )
    },
  }
}

const createListTemplates =
  (http: ProviderHttp): Provider['listTemplates'] =>
  async (accountId, name, signal) => {
    const path = joinPath(accountId, 'message_templates')
    const rows = await withFieldFallback(FIELDS, BASIC_FIELDS, (fields) =>
      fetchAllRows(http, Row, { method: 'GET', path, query: { name, fields, limit: PAGE_SIZE } }, signal),
    )
    // The provider's `name` also matches names that contain it.
    return name === undefined ? rows : rows.filter((row) => row.name === name)
  }

const createCreateTemplate =
  ({ request }: ProviderHttp, listTemplates: Provider['listTemplates']): Provider['createTemplate'] =>
  async (accountId, { name, language, category, allowCategoryChange, components }, signal) => {
    const json = {
      name,
      language,
      category,
      ...(allowCategoryChange === undefined ? {} : { allow_category_change: allowCategoryChange }),
      components,
    }
    try {
      const path = joinPath(accountId, 'message_templates')
      return await request(Created, { method: 'POST', path, json }, signal)
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      if (error.extras.provider_subcode !== DUPLICATE_SUBCODE) throw error
      const templates = await lookUpOutcome(listTemplates(accountId, name, signal)).catch(() => undefined)
      const isDuplicate = !templates || templates.some((row) => row.language === language)
      if (isDuplicate) throw error
      const detail = error.message.replace(
        /^.*?(?=The provider says: )/s,
        'The provider does not accept the template. ',
      )
      throw new Problem('upstream_error', detail, { ...error.extras, reason: 'provider_refused' })
    }
  }

/** The archive has no version, and is on another host than the other endpoints. */
const createArchiveApi = (
  { request, options: { token } }: ProviderHttp,
  archiveUrl: string,
): Pick<Provider, 'archiveTemplates' | 'unarchiveTemplates'> => {
  const archiveRequest = (accountId: string, verb: string, ids: readonly string[]): ProviderRequest => ({
    method: 'POST',
    base: archiveUrl,
    path: joinPath(accountId, 'message_templates', verb),
    json: { hsm_ids: ids },
  })
  const sanitizeReasons = (failed: [string, unknown][]) =>
    Object.fromEntries(failed.map(([id, reason]) => [id, sanitizeProviderText(String(reason), token)]))

  return {
    archiveTemplates: async (accountId, ids, signal) => {
      const { archived_templates: archived, failed_templates: failed } = await request(
        Archived,
        archiveRequest(accountId, 'archive', ids),
        signal,
      )
      return { archived, failed: sanitizeReasons(failed) }
    },

    unarchiveTemplates: async (accountId, ids, signal) => {
      const { unarchived_templates: unarchived, failed_templates: failed } = await request(
        Unarchived,
        archiveRequest(accountId, 'unarchive', ids),
        signal,
      )
      return { unarchived, failed: sanitizeReasons(failed) }
    },
  }
}
