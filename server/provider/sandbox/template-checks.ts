import { isObject, isText } from './call.ts'
import { badTemplate, invalid, required } from './errors.ts'
import { variablesOf } from './template-params.ts'

export const CATEGORIES: readonly string[] = ['MARKETING', 'UTILITY', 'AUTHENTICATION']

type Part = Record<string, unknown>

const MOST_BODY = 1024

/** The name, language and category of a template to be made. */
export const checkEnvelope = (body: Part): { name: string; language: string; category: string } => {
  const { name, language, category } = body
  if (name === undefined) throw required('name')
  if (typeof name !== 'string' || !/^[a-z0-9_]{1,512}$/.test(name)) throw invalid('Param name must be 1 to 512 lowercase letters, digits and underscores.')
  if (language === undefined) throw required('language')
  if (typeof language !== 'string' || !/^[a-z]{2,3}(?:_[A-Z][A-Za-z]{1,3})?$/.test(language)) throw invalid('Param language is not a supported language.')
  if (category === undefined) throw required('category')
  if (typeof category !== 'string' || !CATEGORIES.includes(category)) throw invalid(`Param category must be one of {${CATEGORIES.join(', ')}}.`)
  return { name, language, category }
}

/** The components of a template to be made, when the provider would take them. */
export const checkTemplateComponents = (components: unknown, category: string, named: boolean): Part[] => {
  if (components === undefined) throw required('components')
  if (!Array.isArray(components) || components.length === 0 || components.length > 20 || !components.every(isObject)) throw invalid('Param components must be a list of objects.')
  const strange = components.find((c) => typeof c.type !== 'string' || !TYPES.includes(c.type.toUpperCase()))
  if (strange) throw invalid(`Param components[..]['type'] must be one of {${TYPES.join(', ')}}.`)
  const typed = components.map((c) => ({ ...c, type: String(c.type).toUpperCase() }) as Part)
  const body = typed.filter((c) => c.type === 'BODY')
  if (body.length !== 1) throw badTemplate(2388072, 'Message template body is missing', 'A template needs exactly one component of type BODY.')
  checkBody(body[0]!, category, named)
  for (const part of typed) if (part.type === 'HEADER') checkHeader(part, named)
  for (const part of typed) if (part.type === 'FOOTER') checkFooter(part)
  return typed
}

const TYPES = ['HEADER', 'BODY', 'FOOTER', 'BUTTONS', 'CAROUSEL', 'LIMITED_TIME_OFFER', 'CALL_PERMISSION_REQUEST']

const checkBody = (body: Part, category: string, named: boolean): void => {
  if (category === 'AUTHENTICATION' && body.text === undefined) return
  if (!isText(body.text)) throw badTemplate(2388072, 'Message template body is missing', 'The body of a template needs text.')
  if (body.text.length > MOST_BODY) throw badTemplate(2388040, 'Character Limit Exceeded', `The body can have at most ${MOST_BODY} characters.`)
  const variables = variablesOf(body.text)
  requireSequence(variables, named)
  if (variables.length === 0) return
  const example = isObject(body.example) ? body.example : {}
  const samples = named ? example.body_text_named_params : Array.isArray(example.body_text) ? example.body_text[0] : undefined
  if (!Array.isArray(samples) || samples.length !== variables.length || !samples.every((s) => (named ? isObject(s) && isText(s.example) : isText(s)))) {
    throw badTemplate(2388043, 'Message template "components" param is missing expected field(s)', 'component of type BODY is missing expected field(s) (example)')
  }
  if (/^\s*\{\{\s*\w+\s*\}\}|\{\{\s*\w+\s*\}\}\s*$/.test(body.text)) throw badTemplate(2388299, 'Variables can\'t be at the start or end of the template', 'Leading or trailing params are not allowed.')
}

const requireSequence = (variables: readonly string[], named: boolean): void => {
  if (named ? variables.every((v) => /^[a-z][a-z0-9_]*$/.test(v)) : variables.every((v) => /^\d+$/.test(v)) && variables.map(Number).sort((a, b) => a - b).every((v, i) => v === i + 1)) return
  throw badTemplate(2388072, 'Invalid parameters', named ? 'Names of variables are lowercase letters, digits and underscores.' : 'Variables are numbered in order, from {{1}} on.')
}

const FORMATS = ['TEXT', 'IMAGE', 'VIDEO', 'DOCUMENT', 'LOCATION', 'PRODUCT', 'GIF']

const checkHeader = (header: Part, named: boolean): void => {
  const format = String(header.format).toUpperCase()
  if (!FORMATS.includes(format)) throw invalid(`Param components[..]['format'] must be one of {${FORMATS.join(', ')}}.`)
  const example = isObject(header.example) ? header.example : {}
  const lacks = (what: string) => badTemplate(2388043, 'Message template "components" param is missing expected field(s)', `component of type HEADER is missing expected field(s) (${what})`)
  if (format === 'TEXT') {
    if (!isText(header.text)) throw lacks('text')
    if (header.text.length > 60) throw badTemplate(2388040, 'Character Limit Exceeded', 'The header can have at most 60 characters.')
    if (/[*_~\n]|\p{Extended_Pictographic}/u.test(header.text.replaceAll(/\{\{\s*\w+\s*\}\}/g, ''))) throw badTemplate(2388047, 'Message header format is incorrect', 'The message header can\'t have new lines, formatting characters, emojis or asterisks.')
    const variables = variablesOf(header.text)
    requireSequence(variables, named)
    const samples = named ? example.header_text_named_params : example.header_text
    if (variables.length > 0 && (!Array.isArray(samples) || samples.length !== variables.length)) throw lacks('example')
  } else if (['IMAGE', 'VIDEO', 'DOCUMENT', 'GIF'].includes(format) && !(Array.isArray(example.header_handle) && isText(example.header_handle[0]))) throw lacks('example')
}

const checkFooter = (footer: Part): void => {
  if (footer.code_expiration_minutes !== undefined && footer.text === undefined) return
  if (!isText(footer.text)) throw badTemplate(2388073, 'Message footer format is incorrect', 'The footer needs text.')
  if (footer.text.length > 60) throw badTemplate(2388040, 'Character Limit Exceeded', 'The footer can have at most 60 characters.')
  if (variablesOf(footer.text).length > 0 || /\n|\p{Extended_Pictographic}/u.test(footer.text)) throw badTemplate(2388073, 'Message footer format is incorrect', 'The message footer can\'t have variables, new lines or emojis.')
}
