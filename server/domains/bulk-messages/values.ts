import type { InputOf } from '../../handler.ts'
import { hash } from 'node:crypto'
import type { Candidate } from '../../../storage/broadcasts/audience.ts'
import type { FieldRow } from '../../../storage/contacts/custom-fields.ts'
import { showValue } from '../contacts/attributes.ts'
import { fieldsVisibleTo } from '../contacts/input.ts'
import type { Actor } from '../../kernel/context.ts'
import { Problem, toPointer } from '../../kernel/problem.ts'
import type { TemplateValues } from '../messaging/template-values.ts'
import { findNearestName } from '../../nearest-name.ts'
import { isNameHidden } from '../../visibility/phones.ts'
import { hasHiddenPhones } from '../../visibility/policy.ts'

/*
 * The values of a template that each contact has its own of. What is hidden from whoever sends is no value: a message
 * would show it.
 */

export type BulkTemplate = InputOf<'messaging_send_bulk'>['template']
type BulkValue = NonNullable<BulkTemplate['body']>[number]
type Path = readonly (string | number)[]

/** A value that comes from contacts. `variable`: such as `body[0]`. */
type Source = {
  variable: string
  label: string
  fallback: string | null
  read: (contact: Candidate) => string | null
}

type Filled = {
  values: TemplateValues
  /** The variables of which the contact has no value, and those of them without a fallback. */
  lacking: readonly string[]
  missing: readonly string[]
}

/** A template that was checked against what the sender may see. */
export type Personal = {
  sources: readonly Source[]
  /** The custom fields that are read. */
  fieldIds: readonly string[]
  fill: (contact: Candidate) => Filled
  /** The values with what stands for them, such as `[name, or "there"]`; or with this text. */
  label: (text?: string) => TemplateValues
}

const MAX_VALUE_LENGTH = 1024
/** Of base64url: 96 bits. */
const DIGEST_LENGTH = 16

/** What contacts have is written for people: the provider refuses line breaks and many spaces in a row. */
const toValue = (text: string | null): string | null => {
  const value = (text ?? '').replace(/\s+/gu, ' ').trim()
  return value === '' ? null : Array.from(value).slice(0, MAX_VALUE_LENGTH).join('')
}

const formatPath = (path: Path): string =>
  path.map((part, i) => (typeof part === 'number' ? `[${part}]` : i === 0 ? part : `.${part}`)).join('')

/** Replaces each value of a template by a text. */
const mapValues = (
  { header, body, variables, buttons, ...rest }: BulkTemplate,
  of: (value: BulkValue, path: Path) => string,
): TemplateValues => ({
  ...rest,
  ...(header && {
    header: {
      ...header,
      text: header.text === undefined ? undefined : of(header.text, ['header', 'text']),
    },
  }),
  ...(body && { body: body.map((value, n) => of(value, ['body', n])) }),
  ...(variables && {
    variables: Object.fromEntries(
      Object.entries(variables).map(([name, value]) => [name, of(value, ['variables', name])]),
    ),
  }),
  ...(buttons && {
    buttons: buttons.map((button, n) => ({
      ...button,
      text: button.text === undefined ? undefined : of(button.text, ['buttons', n, 'text']),
    })),
  }),
})

const phoneHidden = (path: Path): Problem =>
  new Problem('forbidden', 'Phone numbers are hidden from you, so no message of yours shows them.', {
    reason: 'phone_hidden',
    errors: [
      {
        pointer: toPointer(['template', ...path]),
        code: 'phone_hidden',
        detail: 'is a phone number',
        fix: 'Use another value.',
      },
    ],
  })

const unknownAttribute = (path: Path, key: string, known: readonly string[]): Problem => {
  const nearest = findNearestName(key, known)
  return new Problem('invalid_input', `There is no custom field with the key ${key}.`, {
    errors: [
      {
        pointer: toPointer(['template', ...path, 'attribute']),
        code: 'unknown_attribute',
        detail: `is no custom field: ${key}`,
        fix: nearest === undefined ? 'Send the key of a custom field.' : `Did you mean ${nearest}?`,
        allowed: known.slice(0, 50),
      },
    ],
  })
}

/** Throws 400 unless a value says where it comes from, once. */
const requireOneOf = ({ text, field, attribute, fallback }: BulkValue, path: Path): void => {
  const count = [text, field, attribute].filter((one) => one !== undefined).length
  if (count === 1 && (text === undefined || fallback === undefined)) return
  const isFallback = count === 1
  throw new Problem('invalid_input', `template.${formatPath(path)} is not one value.`, {
    errors: [
      {
        pointer: toPointer(['template', ...path, ...(isFallback ? ['fallback'] : [])]),
        code: count === 0 ? 'required' : 'ambiguous',
        detail: isFallback ? 'is not used: a text needs none' : 'must have one of text, field and attribute',
        fix: isFallback ? 'Leave it out.' : 'Send {"text": …}, {"field": …} or {"attribute": …}.',
      },
    ],
  })
}

/** Returns a digest of what one message says, which tells whether it is still what a person approved. */
export const digestValues = (values: TemplateValues): string =>
  hash('sha256', JSON.stringify(values), 'base64url').slice(0, DIGEST_LENGTH)

/** Checks the values of a template as this actor sees contacts. Throws 400 and 403 `phone_hidden`. */
export const personalize = (
  actor: Actor,
  template: BulkTemplate,
  allFields: readonly FieldRow[],
): Personal => {
  const fields = fieldsVisibleTo({ actor }, allFields)
  const hidden = hasHiddenPhones(actor)
  const sources = new Map<string, Source>()
  const fieldIds = new Set<string>()
  const findReader = (value: BulkValue, path: Path): Source['read'] => {
    if (value.field !== undefined) {
      if (value.field === 'name') return ({ name }) => (isNameHidden(actor, name) ? null : toValue(name))
      if (value.field === 'external_id') return (contact) => toValue(contact.external_id)
      if (hidden) throw phoneHidden(path)
      return ({ phone }) => phone && `+${phone}`
    }
    const key = value.attribute!
    const field = fields.get(key)
    if (!field) throw unknownAttribute(path, key, [...fields.keys()])
    if (hidden && field.type === 'phone') throw phoneHidden(path)
    fieldIds.add(field.id)
    return ({ attrs }) => {
      const stored = attrs[field.id]
      return stored === undefined ? null : toValue(showValue(field, stored, false).display)
    }
  }
  mapValues(template, (value, path) => {
    requireOneOf(value, path)
    if (value.text !== undefined) return ''
    const fallback = value.fallback ?? null
    const what = value.field?.replace('_', ' ') ?? value.attribute
    const label = fallback === null ? `[${what}]` : `[${what}, or "${fallback}"]`
    const variable = formatPath(path)
    sources.set(variable, { variable, label, fallback, read: findReader(value, path) })
    return ''
  })
  const write = (of: (source: Source) => string): TemplateValues =>
    mapValues(template, (value, path) => value.text ?? of(sources.get(formatPath(path))!))
  return {
    sources: [...sources.values()],
    fieldIds: [...fieldIds],
    fill: (contact) => {
      const [lacking, missing]: [string[], string[]] = [[], []]
      const values = write(({ variable, read, fallback }) => {
        const own = read(contact)
        if (own !== null) return own
        lacking.push(variable)
        if (fallback === null) missing.push(variable)
        return fallback ?? ''
      })
      return { values, lacking, missing }
    },
    label: (text) => write(({ label }) => text ?? label),
  }
}
