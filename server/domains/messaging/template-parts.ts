import { fillVariables, listVariables } from '../templates/variables.ts'
import { parseComponents, type TemplateButton, type TemplateComponent } from './template-components.ts'
import type { TemplateValues } from './template-values.ts'

/** What a customer gets of a template beside its text. `part`: such as `Footer` or `Card 1, button 2 (URL)`. */
export type TemplatePart = { part: string; text: string }

type PartValues = Pick<TemplateValues, 'header' | 'buttons'> & {
  body?: readonly string[] | undefined
  cards?: TemplateValues['cards']
  offer_expires_at?: string | undefined
}

const fill = (text: string, values: readonly (string | undefined)[]): string =>
  fillVariables(
    text,
    listVariables(text),
    values.map((value) => value ?? ''),
  )

/** What else a component says, whatever the provider calls it; samples are not sent. */
const describeRest = (component: object, shown: readonly string[]): string[] =>
  Object.entries(component).flatMap(([name, value]) =>
    value === undefined || value === null || shown.includes(name) || name === 'example'
      ? []
      : [`${name} ${typeof value === 'string' ? value : JSON.stringify(value)}`],
  )

const toText = (parts: readonly unknown[]): string =>
  parts.filter((part) => part !== undefined && part !== '').join(', ')

const describeHeader = (header: TemplateComponent, { header: values = {} }: PartValues): TemplatePart => {
  const format = (header.format ?? 'TEXT').toUpperCase()
  const { text, ...rest } = values
  return {
    part: format === 'TEXT' ? 'Header' : `Header (${format})`,
    text: toText([
      header.text && fill(header.text, [text]),
      ...Object.values(rest),
      ...describeRest(header, ['type', 'format', 'text']),
    ]),
  }
}

const describeButton = (
  button: TemplateButton,
  index: number,
  { buttons = [] }: PartValues,
): TemplatePart[] => {
  const value = buttons.find((one) => one.index === index)
  const part = `Button ${index + 1} (${button.type})`
  const target = toText([
    button.url && fill(button.url, [value?.text]),
    value?.coupon_code && `code ${value.coupon_code}`,
    value?.payload && `payload ${value.payload}`,
    ...describeRest(button, ['type', 'text', 'url']),
  ])
  // Two parts, so that no label can pose as an address.
  return [
    { part, text: button.text ?? '' },
    ...(target === '' ? [] : [{ part: `${part} leads to`, text: target }]),
  ]
}

const describeComponent = (component: TemplateComponent, values: PartValues): TemplatePart[] => {
  const { type, text, buttons, cards } = component
  switch (type.toUpperCase()) {
    case 'HEADER':
      return [describeHeader(component, values)]
    case 'BUTTONS':
      return (buttons ?? []).flatMap((button, index) => describeButton(button, index, values))
    case 'CAROUSEL':
      return (cards ?? []).flatMap((card, index) =>
        describeAll(parseComponents(card.components), values.cards?.[index] ?? {}).map((one) => ({
          ...one,
          part: `Card ${index + 1}, ${one.part.charAt(0).toLowerCase()}${one.part.slice(1)}`,
        })),
      )
    default:
      return [
        {
          part: type.charAt(0).toUpperCase() + type.slice(1).toLowerCase().replaceAll('_', ' '),
          text: toText([
            text && fill(text, values.body ?? []),
            type === 'LIMITED_TIME_OFFER' ? values.offer_expires_at : undefined,
            ...describeRest(component, ['type', 'text']),
          ]),
        },
      ]
  }
}

const describeAll = (components: readonly TemplateComponent[], values: PartValues): TemplatePart[] =>
  components.flatMap((component) => describeComponent(component, values))

/**
 * Returns what a customer gets of a template beside its text, with the values filled in: header, footer, offer,
 * buttons with where they lead, and the cards of a carousel. Nothing that the provider stores of it is left out.
 */
export const describeParts = (components: unknown, values: TemplateValues): TemplatePart[] =>
  describeAll(
    parseComponents(components).filter(({ type }) => type.toUpperCase() !== 'BODY'),
    values,
  )
