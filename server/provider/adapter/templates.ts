import { z } from 'zod'
import { Problem } from '../../core/problem.ts'
import { lookUp, type Provider, type ProviderTemplate } from '../port.ts'
import { everyPage, Maybe, ProviderId, Success, withFields } from './answers.ts'
import { type Ask, at, type Http } from './http.ts'
import { clean } from './problems.ts'

const Created = z.object({ id: ProviderId, status: z.string().min(1), category: Maybe })
const Row = z
  .object({
    id: ProviderId,
    name: z.string(),
    language: z.string(),
    status: z.string(),
    category: Maybe,
    rejected_reason: Maybe,
    components: z
      .array(z.unknown())
      .nullish()
      .transform((components) => components ?? []),
  })
  .transform(({ rejected_reason: reason, ...row }): ProviderTemplate => ({
    ...row,
    rejectedReason: reason === 'NONE' ? null : reason,
  }))

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

const FIELDS = 'id,name,language,status,category,rejected_reason,components'
const FEW = 'id,name,language,status,category,components'
const PAGE = '100'

type Topic =
  | 'createTemplate'
  | 'editTemplate'
  | 'listTemplates'
  | 'archiveTemplates'
  | 'unarchiveTemplates'
  | 'deleteTemplate'

export const templates = (http: Http, archiveUrl: string): Pick<Provider, Topic> => {
  const {
    ask,
    options: { token },
  } = http

  const listTemplates: Provider['listTemplates'] = async (accountId, name, signal) => {
    const rows = await withFields(FIELDS, FEW, (fields) =>
      everyPage(
        http,
        Row,
        { method: 'GET', path: at(accountId, 'message_templates'), query: { name, fields, limit: PAGE } },
        signal,
      ),
    )
    // The provider's `name` also finds names that contain it.
    return name === undefined ? rows : rows.filter((row) => row.name === name)
  }

  /** The provider also gives the code of a duplicate to drafts that are merely wrong; only the list tells. */
  const asDuplicate = async (
    problem: Problem,
    accountId: string,
    name: string,
    language: string,
    signal: AbortSignal,
  ): Promise<Problem> => {
    const there = await lookUp(listTemplates(accountId, name, signal)).catch(() => undefined)
    if (!there || there.some((row) => row.language === language)) return problem
    const detail = problem.message.replace(
      /^.*?The provider says: /s,
      'The provider does not take the template: ',
    )
    const { provider_code, provider_subcode } = problem.extras
    return new Problem('invalid_input', detail, {
      reason: 'template_rules',
      errors: [{ pointer: '#/template', code: 'template_rules', detail }],
      provider_code,
      provider_subcode,
    })
  }

  /** The archive has no version, and stands on another host than the rest. */
  const archive = (accountId: string, verb: string, ids: readonly string[]): Ask => ({
    method: 'POST',
    base: archiveUrl,
    path: at(accountId, 'message_templates', verb),
    json: { hsm_ids: ids },
  })
  const reasons = (failed: [string, unknown][]) =>
    Object.fromEntries(failed.map(([id, reason]) => [id, clean(String(reason), token)]))

  return {
    listTemplates,

    createTemplate: async (
      accountId,
      { name, language, category, allowCategoryChange, components },
      signal,
    ) => {
      try {
        return await ask(
          Created,
          {
            method: 'POST',
            path: at(accountId, 'message_templates'),
            json: {
              name,
              language,
              category,
              ...(allowCategoryChange === undefined ? {} : { allow_category_change: allowCategoryChange }),
              components,
            },
          },
          signal,
        )
      } catch (error) {
        throw (error as Problem).extras.provider_subcode === 2388024
          ? await asDuplicate(error as Problem, accountId, name, language, signal)
          : error
      }
    },

    editTemplate: async (templateId, { components, category }, signal) => {
      await ask(
        Success,
        {
          method: 'POST',
          path: at(templateId),
          json: { components, ...(category === undefined ? {} : { category }) },
        },
        signal,
      )
    },

    archiveTemplates: async (accountId, ids, signal) => {
      const { archived_templates: archived, failed_templates: failed } = await ask(
        Archived,
        archive(accountId, 'archive', ids),
        signal,
      )
      return { archived, failed: reasons(failed) }
    },

    unarchiveTemplates: async (accountId, ids, signal) => {
      const { unarchived_templates: unarchived, failed_templates: failed } = await ask(
        Unarchived,
        archive(accountId, 'unarchive', ids),
        signal,
      )
      return { unarchived, failed: reasons(failed) }
    },

    deleteTemplate: async (accountId, { name, id }, signal) => {
      await ask(
        Success,
        { method: 'DELETE', path: at(accountId, 'message_templates'), query: { name, hsm_id: id } },
        signal,
      )
    },
  }
}
