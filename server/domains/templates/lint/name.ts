import {
  excessLength,
  LANGUAGE_CODE,
  maxLengths,
  TEMPLATE_NAME,
  templateCategories,
} from '../../../../catalog/templates/rules.ts'
import { isBlank } from '../../../../catalog/values.ts'
import { findNearestName } from '../../../nearest-name.ts'
import { languages } from './languages.ts'
import { noFindings, finding, type LintRule } from './rule.ts'
import { quote, suggest } from './text.ts'

/** Converts a text to a name of the allowed characters. */
const toTemplateName = (text: string): string =>
  text
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/([a-z])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '_')
    .replaceAll(/^_+|_+$/g, '')

/** Converts `PT-br` to `pt_BR`; empty when no language is similar. */
const toLanguageCode = (text: string): string => {
  const [language = '', region] = text.trim().split(/[-_ ]+/)
  const code =
    region === undefined ? language.toLowerCase() : `${language.toLowerCase()}_${region.toUpperCase()}`
  return languages.includes(code) ? code : (findNearestName(code, languages) ?? '')
}

/** Words that no message about an order or an account contains. */
const PROMOTIONAL = new RegExp(
  `(?<![\\p{L}\\p{M}\\p{N}])(?:${[
    '\\d+ ?% ?off',
    'sales?',
    'discount(?:s|ed)?',
    'special offer',
    'offers?',
    '(?<!(?:feel|toll|duty|sugar|gluten)[ -])free',
    'buy now',
    'shop now',
    'order now',
    'promo(?: ?codes?)?',
    'promotions?',
    'coupons?',
    'deals?',
    'limited time',
    'ofertas?',
    'descuentos?',
    'rebajas',
    'gratis',
    'compra ahora',
    'descontos?',
    'promoç(?:ão|ões)',
    'promoción',
    'promociones',
    'grátis',
    'compre agora',
    'soldes',
    'remises?',
    'réductions?',
    'gratuite?s?',
    'offre spéciale',
    'achetez',
    'rabatte?',
    'sonderangebote?',
    'angebote?',
    'kostenlos',
    'jetzt kaufen',
    'schlussverkauf',
    'sconti?',
    'offert[ae]',
    'saldi',
    'acquista ora',
    'diskon',
    'beli sekarang',
    'indirim',
    'kampanya',
    'ücretsiz',
    'छूट',
    'मुफ्त',
    'ऑफर',
    'خصم',
    'عرض',
    'مجانا',
    'تخفيضات',
  ].join('|')})(?![\\p{L}\\p{M}\\p{N}])`,
  'iu',
)

export const nameRules: readonly LintRule[] = [
  {
    id: 'name.required',
    severity: 'error',
    source: 'spec',
    about: 'A name is required.',
    find: ({ draft: { name } }) =>
      isBlank(name)
        ? finding('name', 'The template has no name.', 'Name it by what it is for, such as "order_update".')
        : noFindings,
    breaks: { set: { name: ' ' }, at: 'name' },
    passes: { set: { name: 'x' } },
  },
  {
    id: 'name.form',
    severity: 'error',
    source: 'spec',
    about: 'Lowercase letters a to z, digits and underscores.',
    find: ({ draft: { name } }) =>
      isBlank(name) || TEMPLATE_NAME.test(name)
        ? noFindings
        : finding(
            'name',
            `The name ${quote(name)} contains characters other than ` +
              'lowercase letters, digits and underscores.',
            suggest(toTemplateName(name), 'Use only a to z, 0 to 9 and _.'),
          ),
    breaks: { set: { name: 'Order Update' }, at: 'name' },
    passes: { set: { name: 'order_update_2' } },
  },
  {
    id: 'name.length',
    severity: 'error',
    source: 'guidelines',
    about: `At most ${maxLengths.name} characters.`,
    find: ({ draft: { name } }) => {
      const over = isBlank(name) ? 0 : excessLength(name, maxLengths.name)
      return over === 0
        ? noFindings
        : finding(
            'name',
            `The name has ${maxLengths.name + over} characters; the provider accepts ${maxLengths.name}.`,
            `Shorten it by ${over}.`,
          )
    },
    breaks: { set: { name: 'x'.repeat(513) }, at: 'name' },
    passes: { set: { name: 'x'.repeat(512) } },
  },
  {
    id: 'language.required',
    severity: 'error',
    source: 'spec',
    about: 'A language is required.',
    find: ({ draft: { language } }) =>
      isBlank(language)
        ? finding(
            'language',
            'The template has no language.',
            'Give the code of the language it is written in, such as "en_US".',
          )
        : noFindings,
    breaks: { set: { language: '' }, at: 'language' },
    passes: { set: { language: 'en' } },
  },
  {
    id: 'language.form',
    severity: 'error',
    source: 'spec',
    about:
      'Two or three lowercase letters, optionally with an underscore and a country of two capital letters.',
    find: ({ draft: { language } }) =>
      isBlank(language) || LANGUAGE_CODE.test(language)
        ? noFindings
        : finding(
            'language',
            `${quote(language)} is not a language code.`,
            suggest(toLanguageCode(language), 'Write a code such as "en", "en_US" or "pt_BR".'),
          ),
    breaks: { set: { language: 'en-US' }, at: 'language' },
    passes: { set: { language: 'fil' } },
  },
  {
    id: 'language.unknown',
    severity: 'warning',
    source: 'guidelines',
    about: "The language is in the provider's list.",
    find: ({ draft: { language } }) => {
      if (!LANGUAGE_CODE.test(language) || languages.includes(language)) return noFindings
      const general = language.slice(0, language.indexOf('_'))
      const known = languages.includes(general) ? general : (findNearestName(language, languages) ?? '')
      return finding(
        'language',
        `The provider's list of languages has no ${quote(language)}.`,
        suggest(known, "Choose a code from the provider's list of languages."),
      )
    },
    breaks: { set: { language: 'de_BR' }, at: 'language' },
    passes: { set: { language: 'zh_CN' } },
  },
  {
    id: 'category.unknown',
    severity: 'error',
    source: 'spec',
    about: 'The category is `MARKETING`, `UTILITY` or `AUTHENTICATION`.',
    find: ({ draft: { category }, category: taken }) =>
      templateCategories.some((known) => known === category)
        ? noFindings
        : finding(
            'category',
            `${quote(category)} is not a category.`,
            category.trim().toUpperCase() === taken
              ? `Write "${taken}".`
              : 'Write "MARKETING" for advertising, "UTILITY" for news of an order or account, ' +
                  '"AUTHENTICATION" for codes.',
          ),
    breaks: { set: { category: 'Service' }, at: 'category' },
    passes: { set: { category: 'MARKETING' } },
  },
  {
    id: 'category.promotional',
    severity: 'warning',
    source: 'guidelines',
    about: 'A `UTILITY` body does not advertise; the provider would make it `MARKETING`, which costs more.',
    find: ({ draft: { category, body } }) => {
      const word = category === 'UTILITY' ? PROMOTIONAL.exec(body.text ?? '')?.[0] : undefined
      return word === undefined
        ? noFindings
        : finding(
            'category',
            `${quote(word)} in the body is advertising, so the provider may ` +
              'make the template MARKETING or reject it.',
            'Choose MARKETING, or write only about the order or account.',
          )
    },
    breaks: { set: { 'body.text': 'Your order came. Get 20% off the next one.' }, at: 'category' },
    passes: { set: { category: 'MARKETING', 'body.text': 'Your order came. Get 20% off the next one.' } },
  },
]
